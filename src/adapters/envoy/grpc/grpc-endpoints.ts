import { createHash } from 'node:crypto'
import { setImmediate as breathe } from 'node:timers/promises'
import { systemClock } from '../../../provider/clock.js'
import { DrainableError } from '../../../provider/error.js'
import { problemError, type Assignment } from '../codec/assignment.js'
import { JsonAssignment } from '../codec/json.js'
import { checkSets } from '../codec/sets.js'
import type { Initial } from '../sources/initial.js'
import type { Publication } from '../sources/publications.js'
import { ReceiptBook } from '../sources/receipts.js'
import {
  ServedSink,
  type Listening,
  type Origin,
  type ServedEndpoints,
} from '../sources/served-sink.js'
import { LoadBook } from './load-book.js'
import { takeLoads } from './load-reports.js'
import { bind, createServer, type ByteStream, type ServerTls } from './server.js'
import { WireAssignment } from './wire-assignment.js'
import { allNames, XdsStream, type StreamKind } from './xds-stream.js'

/** Checked options. */
export interface GrpcSettings {
  readonly host: string
  readonly port: number
  readonly tls: ServerTls | undefined
  readonly initial?: Initial
  readonly loadInterval: number
  readonly resources: readonly { type: string; name: string; value: Uint8Array }[]
}

const LARGE = 1_000

/** Serves endpoint sets over gRPC, keeps the receipts, and takes load reports. */
export function serveGrpc(settings: GrpcSettings): ServedEndpoints {
  const { host, port, initial, loadInterval } = settings
  const now = (): number => systemClock.now()
  const book = new ReceiptBook(now)
  const loads: LoadBook = new LoadBook(now, loadInterval, (name) => sink.get(name) !== undefined)
  const sink: ServedSink<WireAssignment> = new ServedSink({
    kind: 'grpc',
    host,
    port,
    initial,
    subscribers: book,
    loads,
    parse,
    convert: toWire,
    listen: () => server.listen(loads, () => sink.names()),
  })
  const server = new XdsServer(settings, book, (cluster) => sink.get(cluster))
  sink.listen((cluster) => void server.push(cluster))
  return sink
}

/** The streams of all proxies. */
class XdsServer {
  readonly #settings: GrpcSettings
  readonly #source: ConstructorParameters<typeof XdsStream>[2]
  readonly #streams = new Set<XdsStream>()

  constructor(
    settings: GrpcSettings,
    book: ReceiptBook,
    endpoints: (cluster: string) => Publication<WireAssignment> | undefined,
  ) {
    this.#settings = settings
    const others = settings.resources.map((resource) => ({
      ...resource,
      version: createHash('sha256').update(resource.value).digest('hex').slice(0, 16),
    }))
    this.#source = {
      book,
      names: allNames(),
      endpoints,
      others: (type) => others.filter((other) => other.type === type),
    }
  }

  listen(loads: LoadBook, names: () => readonly string[]): Promise<Listening> {
    const { host, port, tls } = this.#settings
    const server = createServer({
      sotw: (stream, isWhole) => this.#serve(stream, { delta: false, isWhole }),
      delta: (stream, isWhole) => this.#serve(stream, { delta: true, isWhole }),
      loads: (stream) => takeLoads(stream, loads, names),
    })
    return bind(server, host, port, tls, 'grpcEndpoints()')
  }

  /** To every stream, one after another: a large set for a large fleet must not stop everything else. */
  async push(cluster: string): Promise<void> {
    for (const stream of this.#streams) stream.served(cluster)
    const large = (this.#source.endpoints(cluster)?.set.endpoints.length ?? 0) > LARGE
    for (const stream of [...this.#streams]) {
      if (large) await breathe()
      stream.push(cluster)
    }
  }

  #serve(stream: ByteStream, kind: StreamKind): void {
    const served = new XdsStream(stream, kind, this.#source, () => this.#streams.delete(served))
    this.#streams.add(served)
  }
}

/** Sets in EDS JSON or protobuf. What is costly of them waits until they are served. */
function parse(given: readonly unknown[], subject: string): readonly Assignment[] {
  try {
    const sets = given.map((value, i) =>
      value instanceof Uint8Array
        ? WireAssignment.parse(value, `[${i}]`)
        : JsonAssignment.parse(value, `[${i}]`),
    )
    checkSets(sets)
    return sets
  } catch (problem) {
    throw problemError(problem, 'INVALID_OPTIONS', subject)
  }
}

async function toWire(set: Assignment, { subject, code, at }: Origin): Promise<WireAssignment> {
  if (set instanceof WireAssignment) return set
  if (!(set instanceof JsonAssignment))
    throw new DrainableError('INVALID_OPTIONS', `${subject}: expected a set in JSON or protobuf`)
  try {
    return await WireAssignment.fromJson(set, at)
  } catch (problem) {
    throw problemError(problem, code, subject)
  }
}
