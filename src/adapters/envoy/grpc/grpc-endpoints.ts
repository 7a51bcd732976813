import { createHash } from 'node:crypto'
import { setImmediate as breathe } from 'node:timers/promises'
import { systemClock } from '../../../provider/clock.js'
import { DrainableError } from '../../../provider/error.js'
import { AssignmentProblem, type Assignment } from '../codec/assignment.js'
import { JsonAssignment } from '../codec/json.js'
import type { Initial } from '../sources/initial.js'
import { ReceiptBook } from '../sources/receipts.js'
import type { ServedEndpoints } from '../sources/rest-endpoints.js'
import { listeningAt, ServedSets } from '../sources/served-sets.js'
import { checkSets } from '../codec/sets.js'
import type { Published, SinkHost } from '../sources/sink.js'
import { LoadBook } from './load-book.js'
import { takeLoads } from './load-reports.js'
import { bind, createServer, type ByteStream, type Listening, type ServerTls } from './server.js'
import { WireAssignment } from './wire-assignment.js'
import type { XdsResource } from './xds-codec.js'
import { allNames, XdsStream, type StreamKind } from './xds-stream.js'

/** Checked options. */
export interface GrpcSettings {
  readonly host: string
  readonly port: number
  readonly tls: ServerTls | undefined
  readonly initial: Initial
  readonly interval: number
  readonly resources: readonly { type: string; name: string; value: Uint8Array }[]
}

const LARGE = 1_000
const ELSE = 'grpcEndpoints() initial.else'

/** Serves endpoint sets over gRPC, keeps the receipts, and takes load reports. */
export class GrpcEndpoints implements ServedEndpoints {
  readonly kind = 'grpc'
  readonly instance: string
  readonly lateBound = 0
  readonly loads: LoadBook
  readonly #settings: GrpcSettings
  readonly #sets: ServedSets<WireAssignment>
  readonly subscribers = new ReceiptBook(() => systemClock.now())
  readonly #names = allNames()
  readonly #streams = new Set<XdsStream>()
  readonly #others: readonly XdsResource[]
  readonly #closing = new AbortController()
  #listening: Listening | undefined
  #opening: Promise<void> | undefined

  constructor(settings: GrpcSettings) {
    this.#settings = settings
    this.instance = listeningAt('grpc', settings.host, settings.port)
    const { sets, otherwise, held } = settings.initial
    this.#sets = new ServedSets({
      instance: this.instance,
      convert: (set) => converted(set, '', 'adopted from the proxies', 'REJECTED'),
      otherwise: otherwise && (() => toSets(otherwise, ELSE)),
      held,
    })
    this.loads = new LoadBook(
      () => systemClock.now(),
      settings.interval,
      (service) => this.#sets.get(service) !== undefined,
    )
    this.#sets.listen((cluster) => void this.#push(cluster))
    this.#others = settings.resources.map((resource) => ({
      ...resource,
      version: createHash('sha256').update(resource.value).digest('hex').slice(0, 16),
    }))
    // Wrong sets are told by the factory; what is costly of it waits for open().
    if (sets !== undefined) checkInitial(sets, 'grpcEndpoints() initial')
    if (otherwise !== undefined) checkInitial(otherwise, ELSE)
  }

  get address(): { host: string; port: number } | undefined {
    const port = this.#listening?.port
    return port === undefined ? undefined : { host: this.#settings.host, port }
  }

  open(host: SinkHost): Promise<void> {
    this.#opening ??= this.#open(host)
    return this.#opening
  }

  async load(host: SinkHost, signal: AbortSignal): Promise<ReadonlyMap<string, Published>> {
    await this.open(host)
    await this.#sets.adopt(host, signal)
    return this.#sets.all()
  }

  async publish(set: Assignment, signal?: AbortSignal, expected?: Assignment): Promise<Published> {
    signal?.throwIfAborted()
    if (set instanceof WireAssignment) return this.#sets.publish(set, expected)
    if (set instanceof JsonAssignment) {
      return this.#sets.publish(await WireAssignment.fromJson(set), expected)
    }
    throw new DrainableError('INVALID_OPTIONS', 'grpcEndpoints takes sets in JSON or protobuf only')
  }

  async set(sets: readonly unknown[]): Promise<void> {
    const parsed = await toSets(sets, 'grpcEndpoints set()')
    for (const set of parsed) this.#sets.put(set)
  }

  close(): Promise<void> {
    this.#closing.abort()
    this.loads.close()
    this.#listening?.close()
    this.#listening = undefined
    return Promise.resolve()
  }

  async #open(host: SinkHost): Promise<void> {
    const { initial, tls } = this.#settings
    if (initial.sets !== undefined) {
      this.#sets.begin(await toSets(initial.sets, 'grpcEndpoints() initial'))
    }
    const server = createServer({
      sotw: (stream, isWhole) => this.#serve(stream, { delta: false, isWhole }),
      delta: (stream, isWhole) => this.#serve(stream, { delta: true, isWhole }),
      loads: (stream) => takeLoads(stream, this.loads, () => [...this.#sets.all().keys()]),
    })
    this.#listening = await bind(
      server,
      this.#settings.host,
      this.#settings.port,
      tls,
      'grpcEndpoints()',
    )
    if (this.#closing.signal.aborted) await this.close()
    void this.#sets.adoptInBackground(host, this.#closing.signal)
  }

  /** To every stream, one after another: a large set for a large fleet must not stop everything else. */
  async #push(cluster: string): Promise<void> {
    for (const stream of this.#streams) stream.served(cluster)
    const large = (this.#sets.get(cluster)?.set.endpoints.length ?? 0) > LARGE
    for (const stream of [...this.#streams]) {
      if (large) await breathe()
      stream.push(cluster)
    }
  }

  #serve(stream: ByteStream, kind: StreamKind): void {
    const source = {
      book: this.subscribers,
      names: this.#names,
      endpoints: (cluster: string) => this.#sets.get(cluster),
      others: (type: string) => this.#others.filter((other) => other.type === type),
    }
    const served = new XdsStream(stream, kind, source, () => this.#streams.delete(served))
    this.#streams.add(served)
  }
}

function checkInitial(initial: readonly unknown[], subject: string): void {
  refusing(subject, () => checkSets(initial.map(parse)))
}

function parse(value: unknown, i: number): JsonAssignment | WireAssignment {
  return value instanceof Uint8Array
    ? WireAssignment.parse(value, `[${i}]`)
    : JsonAssignment.parse(value, `[${i}]`)
}

async function toSets(values: readonly unknown[], subject: string): Promise<WireAssignment[]> {
  const parsed = refusing(subject, () => {
    const sets = values.map(parse)
    checkSets(sets)
    return sets
  })
  const sets: WireAssignment[] = []
  for (const [i, set] of parsed.entries()) {
    sets.push(set instanceof WireAssignment ? set : await converted(set, `[${i}]`, subject))
  }
  return sets
}

async function converted(
  set: JsonAssignment,
  at: string,
  subject: string,
  code: 'INVALID_OPTIONS' | 'REJECTED' = 'INVALID_OPTIONS',
): Promise<WireAssignment> {
  try {
    return await WireAssignment.fromJson(set, at)
  } catch (problem) {
    if (!(problem instanceof AssignmentProblem)) throw problem
    throw new DrainableError(code, `${subject}: ${problem.toString()}`)
  }
}

function refusing<T>(subject: string, fn: () => T): T {
  try {
    return fn()
  } catch (problem) {
    if (!(problem instanceof AssignmentProblem)) throw problem
    throw new DrainableError('INVALID_OPTIONS', `${subject}: ${problem.toString()}`)
  }
}
