import { type Clock, systemClock } from '../../provider/clock.js'
import type { AdminState, MemberRef } from '../../provider/contract.js'
import { checkOptions } from '../check-options.js'
import { HttpFront } from '../http/front.js'
import type { HttpFake } from '../http/request.js'
import type { HttpServer } from '../http/server.js'
import { toServedTls } from '../http/tls.js'
import type { Config } from './config.js'
import { ADDRESSES, otherOf } from './addresses.js'
import { later, Node } from './node.js'
import {
  dialectOf,
  KNOWN_OPTIONS,
  type FakeFailure,
  type FakeOptions,
  type FakeRequest,
} from './options.js'
import { errorReply, NitroError, toAnswer } from './reply.js'

/** What {@link CitrixFake.occupy} and its kin put on a member. */
export interface FakeLoad {
  /** Requests, or connections, in flight. */
  readonly active?: number
  /** In the surge queue. */
  readonly queued?: number
  /** Idle connections to the backend, parked for reuse: they pollute the counts. */
  readonly pooled?: number
  /** Idle keep-alive clients. */
  readonly idleClients?: number
  /** Connections to the backend that are still being made: each for a request that left the surge queue. */
  readonly connecting?: number
  /** Persistence entries: TROFS waits for these clients, and lets them in. */
  readonly persistent?: number
}

/** What a test sees of a member, whatever NITRO says. */
export interface FakeMemberState {
  readonly svrstate: string
  readonly enabled: boolean
  readonly active: number
  readonly queued: number
  readonly total: bigint
  /** How many connections a change of state has cut so far. */
  readonly cut: number
}

/** A running stand-in. */
export interface CitrixFake extends HttpFake<FakeFailure, FakeRequest> {
  /** The address to give to clients; of a pair, that of the node that was primary first. */
  readonly url: string
  /** Every node's own address. */
  readonly urls: readonly string[]
  /** An address that always reaches the primary, as a SNIP with management access does. */
  readonly snip: string
  readonly port: number
  readonly username: string
  readonly password: string
  /** The certificate that clients trust, PEM; empty without TLS. */
  readonly ca: string
  /** Its SHA-256 fingerprint; empty without TLS. */
  readonly fingerprint256: string
  /** The most requests that were under way at once. */
  readonly peak: number
  /** Sessions that were not logged out. */
  readonly sessions: number
  /** Puts one request in flight on a member; what comes back ends it. */
  occupy(ref: MemberRef, load?: FakeLoad): Promise<() => Promise<void>>
  /** Offers one request, as a client with or without a persistence entry; false where it would go elsewhere. */
  arrive(ref: MemberRef, how?: { readonly persistent?: boolean }): boolean
  /** What is really so. */
  look(ref: MemberRef): FakeMemberState
  /** Changes a member as another operator would: `drain` gracefully, `maint` without grace, `gone` unbinds it. */
  setBehind(ref: MemberRef, to: AdminState | 'gone'): Promise<void>
  /** What the monitors say of it; `TROFS` is a monitor's trofsCode. */
  setHealth(ref: MemberRef, health: 'UP' | 'DOWN' | 'UNKNOWN' | 'BUSY' | 'TROFS'): void
  /** Disables or enables a whole server object, as another operator would. */
  setServer(name: string, to: AdminState): void
  /** Ends every session. */
  expireSessions(): void
  /** The other node takes over; what was established is cut. */
  failover(): Promise<void>
  /**
   * The nodes of a pair lose each other: both are primary, and what one is told the other does not hear. The
   * returned function ends that; the second one is secondary then.
   */
  splitBrain(): () => Promise<void>
  /** The primary starts again from its saved configuration. */
  restart(): Promise<void>
}

/** Starts it; see the package's documentation. */
export async function openFake(options: FakeOptions): Promise<CitrixFake> {
  checkOptions(options, KNOWN_OPTIONS)
  const fake = new Fake(options)
  await fake.start()
  return fake
}

class Fake implements CitrixFake {
  readonly username: string
  readonly password: string
  readonly ca: string
  readonly fingerprint256: string
  readonly #nodes: readonly Node[]
  readonly #front: HttpFront<FakeFailure, FakeRequest>
  readonly #servers: readonly HttpServer[]
  readonly #snip: HttpServer | undefined
  readonly #clock: Pick<Clock, 'setTimeout'>
  #stopTicking: () => void = () => undefined

  constructor(options: FakeOptions) {
    this.#clock = options.clock ?? systemClock
    this.username = options.username ?? 'admin'
    this.password = options.password ?? 'secret'
    const tls = toServedTls(options.tls ?? true)
    this.ca = tls?.ca ?? ''
    this.fingerprint256 = tls?.fingerprint256 ?? ''
    this.#nodes = pairOf(options, () => void this.failover())
    const { severity } = dialectOf(options.version)
    const nodes = new Map<string, () => Node>()
    this.#front = new HttpFront({
      remember: (base, _request, name) => ({ ...base, node: nodes.get(name)?.().address ?? name }),
      error: (failure) => toAnswer(errorReply(failure), severity),
      isFor: (failure, name) =>
        failure.node === undefined || nodes.get(name)?.().address === failure.node,
      garbage: toAnswer({ status: 200, body: '<html><body>Please wait</body></html>' }, severity),
    })
    const add = (name: string, port: number, node: () => Node): HttpServer => {
      nodes.set(name, node)
      return this.#front.add(name, {
        host: options.host ?? '127.0.0.1',
        port,
        tls,
        latency: options.latency ?? 0,
        clock: this.#clock,
        answer: (request) => {
          const tooMany = request.underWay > (options.maxRequests ?? Infinity)
          const reply = tooMany ? new NitroError(446).toReply() : node().answer(request)
          return toAnswer(reply, severity)
        },
      })
    }
    this.#servers = this.#nodes.map((node, i) =>
      add(`nsip${i}`, i === 0 ? (options.port ?? 0) : 0, () => node),
    )
    this.#snip = this.#nodes.length > 1 ? add('snip', 0, () => this.#primary) : undefined
    this.#tickEvery(options.tick ?? 1_000)
  }

  async start(): Promise<void> {
    try {
      await this.#front.open()
    } catch (error) {
      this.#stopTicking()
      throw error
    }
  }

  get sockets(): number {
    return this.#front.sockets
  }

  get requests(): readonly FakeRequest[] {
    return this.#front.requests
  }

  get url(): string {
    return this.urls[0] ?? ''
  }

  get urls(): readonly string[] {
    return this.#servers.map(({ url }) => url)
  }

  get snip(): string {
    return this.#snip?.url ?? this.url
  }

  get port(): number {
    return this.#servers[0]?.port ?? 0
  }

  get peak(): number {
    return this.#front.peak
  }

  get sessions(): number {
    return this.#nodes.reduce((sum, { sessions }) => sum + sessions.open, 0)
  }

  occupy(ref: MemberRef, load: FakeLoad = { active: 1 }): Promise<() => Promise<void>> {
    const { entity } = this.#find(ref)
    const { epoch } = entity.load
    const wanted = Object.entries(load) as [keyof FakeLoad, number][]
    for (const [key, count] of wanted) entity.load[key] += count
    entity.load.total += BigInt(load.active ?? 0)
    let held = true
    return Promise.resolve(() => {
      // What a flush, a failover or a reboot cut is not there any more.
      if (held && entity.load.epoch === epoch) {
        for (const [key, count] of wanted) entity.load[key] -= count
      }
      held = false
      return Promise.resolve()
    })
  }

  arrive(ref: MemberRef, how: { readonly persistent?: boolean } = {}): boolean {
    const { entity } = this.#find(ref)
    const comesBack = how.persistent === true && this.#config(ref).honours(entity)
    const open = entity.svrstate === 'UP' || (entity.phase === 'trofs' && comesBack)
    if (open) entity.load.total += 1n
    return open
  }

  look(ref: MemberRef): FakeMemberState {
    const { entity } = this.#find(ref)
    const { active, queued, total } = entity.load
    return {
      svrstate: entity.svrstate,
      enabled: !entity.disabled,
      active,
      queued,
      total,
      cut: entity.cut,
    }
  }

  async setBehind(ref: MemberRef, to: AdminState | 'gone'): Promise<void> {
    const partition = this.#partition(ref)
    for (const node of this.#nodes) {
      const config = node.partitions.get(partition)
      const found = config?.find(ref.pool, ref.member)
      if (!config || !found) continue
      const { entity, flush, type } = found
      entity.enabled = to === 'ready'
      if (to === 'gone') config.remove(ref.pool, ref.member)
      else if (to === 'ready') config.enter(entity)
      else config.leave(entity, to === 'drain', 0, flush, type)
    }
  }

  setHealth(ref: MemberRef, health: 'UP' | 'DOWN' | 'UNKNOWN' | 'BUSY' | 'TROFS'): void {
    this.#find(ref)
    for (const node of this.#nodes) {
      const entity = node.partitions.get(this.#partition(ref))?.find(ref.pool, ref.member)?.entity
      if (!entity) continue
      entity.monitorTrofs = health === 'TROFS'
      entity.health = health === 'TROFS' ? 'UP' : health
    }
  }

  setServer(name: string, to: AdminState): void {
    for (const node of this.#nodes) {
      for (const config of node.partitions.values()) {
        const server = config.servers.get(name)
        if (!server) continue
        server.enabled = to === 'ready'
        for (const { entity, flush, type } of config.carriedBy(server)) {
          if (to !== 'ready') config.leave(entity, to === 'drain', 0, flush, type)
          else {
            if (!config.retainServiceState) entity.enabled = true
            config.enter(entity)
          }
        }
      }
    }
  }

  fail(what: FakeFailure): () => Promise<void> {
    return this.#front.fail(what)
  }

  expireSessions(): void {
    for (const { sessions } of this.#nodes) sessions.expire()
  }

  failover(): Promise<void> {
    const before = this.#primary
    const after = before.peer
    for (const node of this.#nodes) {
      node.transitionAt = later(node.transitionAt)
      node.dropAll()
    }
    if (after) {
      before.role = 'Secondary'
      after.role = 'Primary'
      return Promise.resolve()
    }
    // A single address stands for whichever node is primary: behind it, the other one answers now.
    before.paired = true
    before.address = otherOf(before.address)
    before.sessions.expire()
    return Promise.resolve()
  }

  splitBrain(): () => Promise<void> {
    const second = this.#primary.peer
    if (second === undefined) throw new Error('a fake without ha has no second node')
    const become = (role: 'Primary' | 'Secondary'): void => {
      second.role = role
      second.transitionAt = later(second.transitionAt)
      for (const node of this.#nodes) node.peerHeard = role === 'Secondary'
    }
    become('Primary')
    return () => {
      become('Secondary')
      return Promise.resolve()
    }
  }

  restart(): Promise<void> {
    this.#primary.reboot()
    return Promise.resolve()
  }

  close(): Promise<void> {
    this.#stopTicking()
    return this.#front.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #tickEvery(ms: number): void {
    this.#stopTicking = this.#clock.setTimeout(() => {
      for (const node of this.#nodes) node.tick()
      this.#tickEvery(ms)
    }, ms)
  }

  get #primary(): Node {
    const node = this.#nodes.find(({ role }) => role === 'Primary') ?? this.#nodes[0]
    if (node === undefined) throw new Error('a fake without a node')
    return node
  }

  #partition(ref: MemberRef): string {
    for (const [name, config] of this.#primary.partitions) {
      if (config.find(ref.pool, ref.member)) return name
    }
    throw new Error(`the fake has no member ${ref.member} in ${ref.pool}`)
  }

  #config(ref: MemberRef): Config {
    const config = this.#primary.partitions.get(this.#partition(ref))
    if (config === undefined) throw new Error('a member without a partition')
    return config
  }

  #find(ref: MemberRef): NonNullable<ReturnType<Config['find']>> {
    const found = this.#config(ref).find(ref.pool, ref.member)
    if (found === undefined) throw new Error(`the fake has no member ${ref.member} in ${ref.pool}`)
    return found
  }
}

function pairOf(options: FakeOptions, onForcedFailover: () => void): readonly Node[] {
  const first = new Node(options, options.address ?? ADDRESSES[0], 'Primary')
  first.onForcedFailover = onForcedFailover
  if (options.ha !== true) return [first]
  const second = new Node(options, ADDRESSES[1], 'Secondary')
  second.onForcedFailover = onForcedFailover
  first.peer = second
  second.peer = first
  return [first, second]
}
