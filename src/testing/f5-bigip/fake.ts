import { setTimeout as sleep } from 'node:timers/promises'
import type { AdminState } from '../../provider/contract.js'
import { checkOptions } from '../check-options.js'
import { HttpFront } from '../http/front.js'
import type { HttpFake, IncomingRequest } from '../http/request.js'
import type { HttpServer } from '../http/server.js'
import { toServedTls } from '../http/tls.js'
import type { Lab } from './rest/call.js'
import { autoSync, failOver } from './tm/cm.js'
import { stateOf, switchTo, toMember, type FakeMember, type FakePool } from './device/config.js'
import { handle } from './rest/handler.js'
import { toLab, toTargets } from './device/lab.js'
import { fromSegment, partitionOf } from './rest/names.js'
import { KNOWN_OPTIONS, type FakeFailure, type FakeOptions, type FakeRequest } from './options.js'
import { toAnswer, toError } from './rest/replies.js'
import type { Unit } from './device/unit.js'
import { VirtualServer } from './device/virtual-server.js'

/** Names a member: full paths, or names in `/Common`; a member also by `address:port`. */
export interface BigipFakeRef {
  readonly pool: string
  readonly member: string
}

/** Counters a test sets by hand. */
export interface BigipFakeLoad {
  readonly curConns?: number
  readonly totConns?: number
  readonly totRequests?: number
  /** Requests in the member's queue. */
  readonly depth?: number
  /** Sessions, as persistence records keep them. */
  readonly curSessions?: number
}

const GARBAGE = { status: 200, text: '<html>{"entries":', type: 'application/json' }

/** A running fake, made by `startFake`. */
export class BigipFake implements HttpFake<FakeFailure, FakeRequest> {
  readonly username: string
  readonly password: string
  /** Certificate a client has to trust, PEM; empty over plain HTTP. */
  readonly ca: string
  /** SHA-256 fingerprint of the certificate; empty over plain HTTP. */
  readonly fingerprint256: string
  readonly #lab: Lab
  readonly #front: HttpFront<FakeFailure, FakeRequest>
  readonly #servers: readonly HttpServer[]
  readonly #targets: ReadonlyMap<string, string>
  readonly #virtuals = new Map<string, VirtualServer>()

  /** Starts the units and waits until they listen. */
  static async start(options: FakeOptions): Promise<BigipFake> {
    checkOptions(options, KNOWN_OPTIONS)
    const fake = new BigipFake(options)
    await fake.#front.open()
    return fake
  }

  private constructor(options: FakeOptions) {
    const lab = toLab(options)
    const tls = toServedTls(options.tls ?? true)
    this.#lab = lab
    this.#front = new HttpFront({
      remember: (base, request, unit) => ({ ...base, unit, auth: authOf(request) }),
      error: toError,
      garbage: toAnswer(GARBAGE),
      isFor: (failure, unit) => failure.unit === undefined || failure.unit === unit,
    })
    this.#servers = lab.units.map((unit, i) =>
      this.#front.add(unit.name, {
        host: lab.options.host,
        port: options.port === undefined || options.port === 0 ? 0 : options.port + i,
        tls,
        latency: lab.options.latency,
        ...(options.clock === undefined ? {} : { clock: options.clock }),
        answer: (request) => toAnswer(handle(lab, unit, request)),
      }),
    )
    this.ca = tls?.ca ?? ''
    this.fingerprint256 = tls?.fingerprint256 ?? ''
    this.username = lab.options.username
    this.password = lab.options.password
    this.#targets = toTargets(lab.options.pools)
  }

  /** Every request of every unit, in the order they came. */
  get sockets(): number {
    return this.#front.sockets
  }

  get requests(): readonly FakeRequest[] {
    return this.#front.requests
  }

  /** Address of the first unit. */
  get url(): string {
    return this.urls[0] ?? ''
  }

  /** Addresses of all units. */
  get urls(): readonly string[] {
    return this.#servers.map(({ url }) => url)
  }

  /** Names of the units, as in {@link FakeRequest.unit}. */
  get units(): readonly string[] {
    return this.#lab.units.map((unit) => unit.name)
  }

  /** Name of the unit that passes traffic. */
  get active(): string {
    return this.#active().name
  }

  /** Live tokens on all units. */
  get tokens(): number {
    return this.#lab.units.reduce((sum, unit) => sum + unit.tokens.count(), 0)
  }

  /** The most requests one unit had in the works at one time. */
  get peak(): number {
    return this.#front.peak
  }

  /**
   * Holds a connection to a member on the active unit until the returned function is called.
   *
   * @param ref - the member
   * @param n - how many
   * @param unitName - on that unit
   */
  occupy(ref: BigipFakeRef, n = 1, unitName?: string): Promise<() => Promise<void>> {
    const unit = this.#unit(unitName)
    const { pool, member } = this.#find(unit, ref)
    const flows = Array.from({ length: n }, () => unit.open(pool, member))
    return Promise.resolve(() => {
      for (const flow of flows) unit.end(flow)
      return Promise.resolve()
    })
  }

  /**
   * Holds connections to a node past all pools, as an iRule's `node` command sends them: only the node's
   * own counters show them.
   */
  occupyNode(name: string, n = 1): Promise<() => Promise<void>> {
    const unit = this.#active()
    const node = unit.config.nodes.get(fromSegment(name))
    if (node === undefined) throw new Error(`the fake has no node ${name}`)
    const beside = { fullPath: node.fullPath, address: node.address, port: 0 }
    const flows = Array.from({ length: n }, () => unit.open({ fullPath: '' }, beside))
    return Promise.resolve(() => {
      for (const flow of flows) unit.end(flow)
      return Promise.resolve()
    })
  }

  /** Adds persistence records of a member on the active unit: `curSessions` counts them. */
  persist(ref: BigipFakeRef, n = 1): void {
    const unit = this.#active()
    const { pool, member } = this.#find(unit, ref)
    for (let i = 0; i < n; i += 1) unit.remember(pool, member, `192.0.2.${(i % 250) + 1}`)
  }

  /** How many persistence records a member has on the active unit. */
  records(ref: BigipFakeRef): number {
    const unit = this.#active()
    const { pool, member } = this.#find(unit, ref)
    return unit.recordsOf(pool, member).length
  }

  /** A connection to a member comes and goes. */
  visit(ref: BigipFakeRef): void {
    const unit = this.#active()
    const { pool, member } = this.#find(unit, ref)
    unit.end(unit.open(pool, member))
  }

  /** Sets counters of a member on the active unit, or on the named one. */
  setLoad(ref: BigipFakeRef, load: BigipFakeLoad, unitName?: string): void {
    const unit = this.#unit(unitName)
    const { pool, member } = this.#find(unit, ref)
    unit.counters(pool.fullPath, member.fullPath).change(load)
  }

  /** What the active unit holds for a member, with no lag. */
  load(ref: BigipFakeRef): Required<BigipFakeLoad> {
    const unit = this.#active()
    const { pool, member } = this.#find(unit, ref)
    const { curConns, totConns, totRequests, depth, curSessions } = unit.counters(
      pool.fullPath,
      member.fullPath,
    ).now
    return { curConns, totConns, totRequests, depth, curSessions }
  }

  /** The two words of a member as the named unit (or the active one) holds them. */
  state(ref: BigipFakeRef, unitName?: string): AdminState {
    return stateOf(this.#find(this.#unit(unitName), ref).member)
  }

  /** The two words of a node. */
  nodeState(name: string, unitName?: string): AdminState {
    const node = this.#unit(unitName).config.nodes.get(fromSegment(name))
    if (node === undefined) throw new Error(`the fake has no node ${name}`)
    return stateOf(node)
  }

  /** Transactions that are open. */
  get transactions(): number {
    const open = this.#lab.units.map((unit) => [...unit.transactions.values()])
    return open.flat().filter(({ state }) => state !== 'COMPLETED').length
  }

  /** Another client changes a member on the active unit, or takes it out of its pool. */
  async setBehind(ref: BigipFakeRef, to: AdminState | 'gone'): Promise<void> {
    const unit = this.#active()
    const { pool, member } = this.#find(unit, ref)
    if (to === 'gone') pool.members.delete(member.fullPath)
    else switchTo(member, to)
    this.#changed(unit)
  }

  /** Another client changes a node on the active unit: it reaches the node's members in every pool. */
  setNodeBehind(name: string, to: AdminState): void {
    const unit = this.#active()
    const node = unit.config.nodes.get(fromSegment(name))
    if (node === undefined) throw new Error(`the fake has no node ${name}`)
    switchTo(node, to)
    this.#changed(unit)
  }

  /** A monitor's verdict on a member, on every unit. */
  setMonitor(ref: BigipFakeRef, to: 'up' | 'down' | 'checking' | 'unchecked'): void {
    for (const unit of this.#lab.units) this.#find(unit, ref).member.monitor = to
  }

  /** Adds a member, as a person or DNS would. */
  addMember(pool: string, member: Parameters<typeof toMember>[1]): void {
    const unit = this.#active()
    const found = unit.config.pools.get(fromSegment(pool))
    if (found === undefined) throw new Error(`the fake has no pool ${pool}`)
    unit.config.addMember(found, toMember(found.fullPath, member, found.members.size))
    this.#changed(unit)
  }

  /** Lets requests go wrong, on every unit or on the one that it names; the returned function ends that. */
  fail(what: FakeFailure): () => Promise<void> {
    return this.#front.fail(what)
  }

  /** Words that sync-status answers in place of the true ones; `undefined` ends that. */
  setSyncStatus(status: string | undefined): void {
    this.#lab.syncStatus = status
  }

  /** Makes every token too old at once. */
  expireTokens(): void {
    for (const unit of this.#lab.units) unit.tokens.expireAll()
  }

  /**
   * The active unit becomes standby and its flows end; another one takes over, with its own
   * configuration. A single unit becomes active again with the next call.
   *
   * @param to - name of the unit that takes over; the next one in order unless given
   */
  failover(to?: string): Promise<void> {
    failOver(this.#lab, to)
    return Promise.resolve()
  }

  /**
   * Two units lose each other: both are active for one traffic group. The returned function ends
   * that; the second one is standby then.
   */
  splitBrain(): () => Promise<void> {
    const second = this.#lab.units.find((unit) => unit !== this.#active())
    if (second === undefined) throw new Error('a fake without units or pair has no second unit')
    second.setRole('active')
    this.#lab.split = true
    return () => {
      second.setRole('standby')
      this.#lab.split = false
      return Promise.resolve()
    }
  }

  /**
   * A unit restarts: 503, then paths that are not registered, then objects that seem to be missing.
   * Tokens, flows, counters and what was not saved are gone; with `keep` only the REST services
   * restart, and of all that just the tokens go.
   *
   * @returns when it answers as before
   */
  async restart(
    options: { readonly ms?: number; readonly keep?: boolean; readonly unit?: string } = {},
  ): Promise<void> {
    const unit = this.#unit(options.unit)
    const third = (options.ms ?? 600) / 3
    unit.tokens.clear()
    if (options.keep !== true) {
      unit.resetTraffic()
      if (unit.saved !== undefined) unit.config.copyFrom(unit.saved)
      unit.setRole(unit.role)
    }
    for (const stage of ['proxy', 'framework', 'loading'] as const) {
      unit.stage = stage
      await sleep(third, undefined, { ref: false })
    }
    unit.stage = 'up'
  }

  /** Holds a unit in a stage of its start until the next call. */
  setStage(stage: 'proxy' | 'framework' | 'loading' | 'up', unitName?: string): void {
    this.#unit(unitName).stage = stage
  }

  /**
   * A TCP virtual server in front of a pool: it forwards to the members' `to`, round robin among
   * those enabled, and counts what it forwards.
   *
   * @param pool - the pool
   * @param options - `persist`: clients of one source address stay with their member
   */
  async virtual(
    pool: string,
    options: { readonly persist?: boolean } = {},
  ): Promise<{ readonly host: string; readonly port: number }> {
    const full = fromSegment(pool)
    const known = this.#virtuals.get(full)
    if (known !== undefined) return known.address
    const made = new VirtualServer({
      pool: full,
      persist: options.persist ?? false,
      unit: () => this.#active(),
      target: (member) => this.#targets.get(`${full}\0${member.fullPath}`),
    })
    await made.listen(this.#lab.options.host)
    this.#virtuals.set(full, made)
    return made.address
  }

  /** Stops listening and cuts every connection. */
  async close(): Promise<void> {
    for (const virtual of this.#virtuals.values()) virtual.close()
    await this.#front.close()
  }

  /** Closes it. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #unit(name: string | undefined): Unit {
    return this.#lab.units.find((unit) => unit.name === name) ?? this.#active()
  }

  #active(): Unit {
    const unit = this.#lab.units.find((u) => u.role === 'active') ?? this.#lab.units[0]
    if (unit === undefined) throw new Error('the fake has no unit')
    return unit
  }

  #changed(unit: Unit): void {
    unit.config.revision += 1
    autoSync(this.#lab, unit)
  }

  #find(unit: Unit, ref: BigipFakeRef): { pool: FakePool; member: FakeMember } {
    const pool = unit.config.pools.get(fromSegment(ref.pool))
    const partition = pool === undefined ? 'Common' : partitionOf(pool.fullPath)
    const member =
      pool?.members.get(ref.member) ??
      pool?.members.get(`/${partition}/${ref.member}`) ??
      pool?.members.get(`/Common/${ref.member}`) ??
      [...(pool?.members.values() ?? [])].find(
        (m) => `${m.address}:${m.port}` === ref.member || m.node.endsWith(`/${ref.member}`),
      )
    if (pool === undefined || member === undefined) {
      throw new Error(`the fake has no member ${ref.member} in pool ${ref.pool}`)
    }
    return { pool, member }
  }
}

function authOf({ headers }: IncomingRequest): FakeRequest['auth'] {
  if (headers['x-f5-auth-token'] !== undefined) return 'token'
  return headers.authorization === undefined ? 'none' : 'basic'
}
