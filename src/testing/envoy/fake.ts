import type { AdminState as MemberState, MemberRef } from '../../provider/contract.js'
import { HttpFront } from '../http/front.js'
import type { HttpFake, HttpFakeFailure, HttpFakeRequest } from '../http/request.js'
import type { HttpAnswer, HttpServer } from '../http/server.js'
import { answerAdmin } from './admin.js'
import type { ReceivedEndpoint, Status } from './assignment.js'
import { Cluster, type Host } from './cluster.js'
import type { FakeEds, FakeEndpoint, Settings } from './options.js'
import { follow, report, type Stop } from './sources.js'

const NOWHERE = { region: '', zone: '', subZone: '' }

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
  /** Sends a request as a client would: it goes where the workers send it; undefined is a 503. */
  send(pool: string): SentRequest | undefined
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
  #clusters = new Map<string, Cluster>()
  #eds: FakeEds | undefined
  #bootAt = new Date()
  #stops: Stop[] = []

  constructor(settings: Settings) {
    this.#settings = settings
    this.#eds = settings.eds
    const { port, socket } = settings
    this.#server = this.#front.add('admin', {
      host: '127.0.0.1',
      port,
      socket,
      latency: 0,
      answer: ({ method, path }) => this.#answer(method, path),
    })
  }

  get url(): string {
    return this.#server.url
  }

  get requests(): readonly HttpFakeRequest[] {
    return this.#front.requests
  }

  async open(): Promise<void> {
    await this.#front.open()
    this.#boot()
    await this.#settled()
  }

  async follow(eds: FakeEds): Promise<void> {
    this.#stop()
    this.#eds = eds
    this.#begin()
    await this.#settled()
  }

  occupy(ref: MemberRef): Promise<() => Promise<void>> {
    const cluster = this.#clusters.get(ref.pool)
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

  send(pool: string): SentRequest | undefined {
    const cluster = this.#clusters.get(pool)
    const host = cluster?.pick()
    if (cluster === undefined || host === undefined) return undefined
    return { member: host.name, end: cluster.begin(host) }
  }

  setHealth(ref: MemberRef, passing: boolean): void {
    this.#clusters.get(ref.pool)?.setHealth(ref.member, passing)
  }

  setBehind(ref: MemberRef, to: MemberState | 'gone'): Promise<void> {
    const cluster = this.#clusters.get(ref.pool)
    if (this.#eds !== undefined || cluster === undefined) {
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
    this.#stop()
    this.#front.hangUp()
    this.#boot()
    await this.#settled()
  }

  async close(): Promise<void> {
    this.#stop()
    await this.#front.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #boot(): void {
    // Two starts never have one moment.
    this.#bootAt = new Date(Math.max(Date.now(), this.#bootAt.getTime() + 1))
    this.#clusters = new Map(
      Object.entries(this.#settings.pools).map(([name, endpoints]) => {
        const cluster = new Cluster(name, this.#settings)
        if (this.#eds === undefined) {
          const received = endpoints.map(toReceived)
          cluster.update({ service: cluster.service, endpoints: received }, '1')
        }
        return [name, cluster]
      }),
    )
    this.#begin()
  }

  #begin(): void {
    const clusters = [...this.#clusters.values()]
    if (this.#eds !== undefined) this.#stops.push(follow(this.#eds, this.#settings, clusters))
    const { loads } = this.#settings
    if (loads !== undefined) this.#stops.push(report(loads, this.#settings, clusters))
  }

  #stop(): void {
    for (const stop of this.#stops) stop()
    this.#stops = []
    for (const cluster of this.#clusters.values()) cluster.close()
  }

  /** Waits a moment for the first sets, as Envoy holds its listeners back for them. */
  async #settled(): Promise<void> {
    const end = performance.now() + 1_000
    while (performance.now() < end) {
      if ([...this.#clusters.values()].every(({ hosts }) => hosts.size > 0)) return
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }

  #answer(method: string, path: string): HttpAnswer {
    const { status, text } = answerAdmin(method, path, {
      settings: this.#settings,
      clusters: this.#clusters,
      bootAt: this.#bootAt,
    })
    return { status, text, headers: PLAIN }
  }
}

function toError({ status = 503, body = 'upstream connect error' }: HttpFakeFailure): HttpAnswer {
  return { status, text: typeof body === 'string' ? body : JSON.stringify(body), headers: PLAIN }
}

function toReceived({ address, port, hostname }: FakeEndpoint): ReceivedEndpoint {
  return {
    address,
    port,
    hostname: hostname ?? '',
    status: 'HEALTHY',
    weight: undefined,
    priority: 0,
    locality: NOWHERE,
  }
}
