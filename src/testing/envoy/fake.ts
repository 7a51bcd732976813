import type { AdminState as MemberState, MemberRef } from '../../provider/contract.js'
import { HttpFront } from '../http/front.js'
import type {
  HttpFake,
  HttpFakeFailure,
  HttpFakeRequest,
  IncomingRequest,
} from '../http/request.js'
import type { HttpAnswer, HttpServer } from '../http/server.js'
import { answerAdmin } from './admin.js'
import type { Status } from './assignment.js'
import type { Host } from './cluster.js'
import type { FakeEds, Settings } from './options.js'
import { Process } from './process.js'

const PLAIN = { 'content-type': 'text/plain' }
const GARBAGE = { status: 200, headers: PLAIN, text: '{"cluster_statuses": [{"na' }

/** A request that the fake's data plane holds. */
export interface SentRequest {
  /** Where it went. */
  readonly member: string
  /** Lets it end in good order. */
  end(): void
}

/** A running fake. Its `url` is the admin API's, for `admin` of `envoy()`. */
export interface EnvoyFake extends HttpFake {
  /** Takes endpoint sets from there from now on. */
  follow(eds: FakeEds): Promise<void>
  /**
   * Sends a request as a client would: it goes where the workers send it; undefined is a 503.
   *
   * @param labels - the subset that its route asks for
   */
  send(pool: string, labels?: Readonly<Record<string, string>>): SentRequest | undefined
  /**
   * Starts the next process; the present one goes on with its requests for `parentShutdown`, and answers
   * only connections to the admin API that it had before.
   */
  hotRestart(): Promise<void>
  /** A cluster arrives by CDS, as the others are. It is fed by `eds`. */
  addCluster(name: string): Promise<void>
  /** CDS removes a cluster: it is listed no more, and its requests go on. */
  removeCluster(name: string): void
  /** One more request that a worker balanced in panic mode (`lb_healthy_panic`), wherever it went. */
  countPanic(pool: string): void
  /** What active checks find from now on. */
  setHealth(ref: MemberRef, passing: boolean): void
  /** Changes an endpoint that the fake itself owns (without `eds`). */
  setBehind(ref: MemberRef, to: MemberState | 'gone'): Promise<void>
}

/** Starts it; see the package's documentation. */
export async function openFake(settings: Settings): Promise<EnvoyFake> {
  const fake = new Fake(settings)
  await fake.open()
  return fake
}

/** One fake Envoy process after another, at one address. */
class Fake implements EnvoyFake {
  readonly #settings: Settings
  readonly #front = new HttpFront<HttpFakeFailure, HttpFakeRequest>({
    remember: (base) => base,
    error: toError,
    garbage: GARBAGE,
  })
  readonly #server: HttpServer
  /** Which process a connection to the admin API was made to. */
  readonly #owners = new WeakMap<object, Process>()
  #bootAt = new Date()
  #process: Process | undefined

  constructor(settings: Settings) {
    this.#settings = settings
    const { port, socket } = settings
    this.#server = this.#front.add('admin', {
      host: '127.0.0.1',
      port,
      socket,
      latency: 0,
      answer: (request) => this.#answer(request),
    })
  }

  get url(): string {
    return this.#server.url
  }

  get sockets(): number {
    return this.#front.sockets
  }

  get requests(): readonly HttpFakeRequest[] {
    return this.#front.requests
  }

  async open(): Promise<void> {
    await this.#front.open()
    this.#boot(this.#settings.eds)
    await this.#settled()
  }

  async follow(eds: FakeEds): Promise<void> {
    this.#now.begin(eds)
    await this.#settled()
  }

  async hotRestart(): Promise<void> {
    this.#boot(this.#now.eds, this.#now)
    await this.#settled()
  }

  async addCluster(name: string): Promise<void> {
    this.#now.add(name)
    await this.#settled()
  }

  removeCluster(name: string): void {
    this.#now.remove(name)
  }

  occupy(ref: MemberRef): Promise<() => Promise<void>> {
    const cluster = this.#now.clusters.get(ref.pool)
    const host = cluster?.hosts.get(ref.member)
    if (cluster === undefined || host === undefined) {
      return Promise.reject(new Error(`the fake has no ${ref.pool}/${ref.member}`))
    }
    const end = cluster.begin(host)
    return Promise.resolve(() => {
      end()
      return Promise.resolve()
    })
  }

  send(pool: string, labels?: Readonly<Record<string, string>>): SentRequest | undefined {
    const cluster = this.#now.clusters.get(pool)
    const host = cluster?.pick(labels)
    if (cluster === undefined || host === undefined) return undefined
    return { member: host.name, end: cluster.begin(host) }
  }

  countPanic(pool: string): void {
    const cluster = this.#now.clusters.get(pool)
    if (cluster !== undefined) cluster.counters.panic++
  }

  setHealth(ref: MemberRef, passing: boolean): void {
    this.#now.clusters.get(ref.pool)?.setHealth(ref.member, passing)
  }

  setBehind(ref: MemberRef, to: MemberState | 'gone'): Promise<void> {
    const cluster = this.#now.clusters.get(ref.pool)
    if (this.#now.eds !== undefined || cluster === undefined) {
      return Promise.reject(
        new Error('the endpoints of this fake come from its eds: change them there'),
      )
    }
    const status: Status = to === 'ready' ? 'HEALTHY' : to === 'drain' ? 'DRAINING' : 'UNHEALTHY'
    const endpoints = [...cluster.hosts.values()].flatMap(({ name, endpoint }: Host) => {
      if (name !== ref.member) return [endpoint]
      return to === 'gone' ? [] : [{ ...endpoint, status }]
    })
    cluster.update({ service: cluster.service, endpoints }, `${Number(cluster.version) + 1}`)
    return Promise.resolve()
  }

  fail(what: HttpFakeFailure): () => Promise<void> {
    return this.#front.fail(what)
  }

  async restart(): Promise<void> {
    const { eds } = this.#now
    this.#now.stop()
    this.#front.hangUp()
    this.#boot(eds)
    await this.#settled()
  }

  async close(): Promise<void> {
    this.#process?.stop()
    await this.#front.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  get #now(): Process {
    if (this.#process === undefined) throw new Error('the fake is not open')
    return this.#process
  }

  #boot(eds: FakeEds | undefined, parent?: Process): void {
    // Two starts never have one moment.
    this.#bootAt = new Date(Math.max(Date.now(), this.#bootAt.getTime() + 1))
    this.#process = new Process(this.#settings, this.#bootAt, eds, parent)
  }

  /** Waits a moment for the first sets, as Envoy holds its listeners back for them. */
  async #settled(): Promise<void> {
    const end = performance.now() + 1_000
    while (performance.now() < end) {
      if ([...this.#now.clusters.values()].every(({ hosts }) => hosts.size > 0)) return
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }

  #answer({ method, path, connection }: IncomingRequest): HttpAnswer | undefined {
    const owner = this.#owners.get(connection) ?? this.#now
    this.#owners.set(connection, owner)
    if (!owner.running) return undefined
    const { status, text } = answerAdmin(method, path, { settings: this.#settings, process: owner })
    return { status, text, headers: PLAIN }
  }
}

function toError({ status = 503, body = 'upstream connect error' }: HttpFakeFailure): HttpAnswer {
  return { status, text: typeof body === 'string' ? body : JSON.stringify(body), headers: PLAIN }
}
