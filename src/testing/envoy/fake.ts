import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AdminState as MemberState, MemberRef } from '../../provider/contract.js'
import { answerAdmin } from './admin.js'
import type { ReceivedEndpoint, Status } from './assignment.js'
import { Cluster, type Host } from './cluster.js'
import type { EnvoyFake, FakeFailure, FakeRequest } from './index.js'
import type { FakeEds, FakeEndpoint, Settings } from './options.js'
import { follow, report, type Stop } from './sources.js'

const NOWHERE = { region: '', zone: '', subZone: '' }

/** One fake Envoy process after another, at one address. */
export class FakeEnvoyServer implements EnvoyFake {
  readonly requests: { readonly method: string; readonly path: string }[] = []
  readonly #settings: Settings
  readonly #server: Server
  #clusters = new Map<string, Cluster>()
  #eds: FakeEds | undefined
  #bootAt = new Date()
  #stops: Stop[] = []
  #failures: { readonly failure: FakeFailure; left: number }[] = []
  #port = 0

  constructor(settings: Settings) {
    this.#settings = settings
    this.#eds = settings.eds
    this.#server = createServer((request, response) => this.#answer(request, response))
  }

  get url(): string {
    const { socket } = this.#settings
    return socket === undefined ? `http://127.0.0.1:${this.#port}` : `unix:${socket}`
  }

  async open(): Promise<void> {
    const { socket, port } = this.#settings
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject)
      if (socket === undefined) this.#server.listen(port, '127.0.0.1', () => resolve())
      else this.#server.listen(socket, () => resolve())
    })
    const at = this.#server.address()
    if (typeof at === 'object' && at !== null) this.#port = at.port
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

  send(pool: string): FakeRequest | undefined {
    const cluster = this.#clusters.get(pool)
    const host = cluster?.pick()
    if (cluster === undefined || host === undefined) return undefined
    return { member: host.name, end: cluster.begin(host) }
  }

  setHealth(ref: MemberRef, passing: boolean): void {
    this.#clusters.get(ref.pool)?.setHealth(ref.member, passing)
  }

  setBehind(ref: MemberRef, to: MemberState | 'gone'): void {
    const cluster = this.#clusters.get(ref.pool)
    if (this.#eds !== undefined || cluster === undefined) {
      throw new Error('the endpoints of this fake come from its eds: change them there')
    }
    const status: Status = to === 'ready' ? 'HEALTHY' : to === 'drain' ? 'DRAINING' : 'UNHEALTHY'
    const endpoints = [...cluster.hosts.values()].flatMap(({ name, endpoint }: Host) => {
      if (name !== ref.member) return [endpoint]
      return to === 'gone' ? [] : [{ ...endpoint, status }]
    })
    cluster.update({ service: cluster.service, endpoints }, `${Number(cluster.version) + 1}`)
  }

  fail(failure: FakeFailure): void {
    this.#failures.push({ failure, left: failure.times ?? Infinity })
    if (failure.how === 'refuse') this.#server.closeAllConnections()
  }

  async restart(): Promise<void> {
    this.#stop()
    this.#server.closeAllConnections()
    this.#boot()
    await this.#settled()
  }

  async close(): Promise<void> {
    this.#stop()
    if (!this.#server.listening) return
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
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

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const { method = 'GET', url: path = '/' } = request
    const hit = this.#failures.find(
      ({ failure, left }) => left > 0 && (failure.match?.test(path) ?? true),
    )
    if (hit !== undefined) {
      hit.left--
      fault(hit.failure, request, response)
      return
    }
    this.requests.push({ method, path })
    const { status, text } = answerAdmin(method, path, {
      settings: this.#settings,
      clusters: this.#clusters,
      bootAt: this.#bootAt,
    })
    response.writeHead(status, { 'content-type': 'text/plain' }).end(text)
  }
}

function fault({ how }: FakeFailure, request: IncomingMessage, response: ServerResponse): void {
  if (how === 'silent') return
  if (how === 'status') response.writeHead(503).end('upstream connect error')
  else if (how === 'garbage') response.writeHead(200).end('{"cluster_statuses": [{"na')
  else request.socket.resetAndDestroy()
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
