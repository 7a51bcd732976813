import type {
  CallContext,
  Change,
  ChangeResult,
  DrainableProvider,
  Lease,
  PresentReading,
  ReconcileOptions,
  SetOptions,
  Snapshot,
  TicketStore,
} from 'drainable'
import { DrainableError, reconcile, type Reconciler } from 'drainable'
import {
  fakeClock,
  fakeLease,
  fakeProvider,
  type FakeClock,
  type FakeProvider,
} from 'drainable/testing'
import { ClosedBy } from './closed-by.js'
import { desired, memoryStore, web, type State } from './set-up.js'

/** Numbers that look random, the same for one seed. */
export function randomOf(seed: number): (n: number) => number {
  let state = (seed * 2654435761) >>> 0
  return (n) => {
    state = (Math.imul(state ^ (state >>> 15), 2246822519) + 0x9e3779b9) >>> 0
    return ((state ^ (state >>> 13)) >>> 0) % n
  }
}

export const OURS = ['ctl-a', 'ctl-b', 'ctl-c', 'ctl-d', 'ctl-e']
export const STRANGERS = ['vm', 'backup']
/** Of seven members: two drains and one operator are enough to meet it. */
const KEEP = 3
/** What was read or wished before may still be on its way, in milliseconds. */
const ON_ITS_WAY = 500

const ENDINGS: readonly SetOptions[] = [{}, { timeout: '5s' }, { timeout: '60s' }]

/** A balancer with a hidden truth: who set what, and what every change of ours did in that moment. */
export class World {
  readonly random: (n: number) => number
  readonly clock: FakeClock = fakeClock()
  readonly lb: FakeProvider
  readonly store = memoryStore()
  readonly lease = fakeLease({ clock: this.clock })
  readonly wrong: string[] = []
  /** Who closed a member that is not ready: us, or another client. */
  readonly closedBy = new ClosedBy()
  readonly processes = new Set<Process>()
  /** Members that we hold, or held until a reload forgot it: putting that back takes no place. */
  readonly #heldByUs = new Set<string>()
  /** Those wished to serve since, or that could not be put back. A run that released one asks for a place again. */
  readonly #letGo = new Set<string>()
  /** When an operator changed something, or another set was wished. */
  #changedAt = -Infinity
  /** How often the floor was asked of a hold, and there was a place. */
  taken = 0
  /** What is wanted now of each of ours. */
  wanted: Record<string, State> = {}
  storeFails = 0
  readonly #ends = new Map<string, (() => void)[]>()
  readonly #places = new Map<string, PresentReading>()

  constructor(random: (n: number) => number) {
    this.random = random
    this.lb = fakeProvider({
      pools: { web: [...OURS, ...STRANGERS], other: ['x1', 'x2'] },
      clock: this.clock,
      instance: `world-${random(1e9)}`,
      // No more looks than a story needs to be told.
      capabilities: { lateBound: 300, blind: random(2) * 200, minInterval: 40 },
      latency: random(3) * 5,
    })
  }

  /** One process: nothing of it reaches anything once it is killed. */
  process(options: Partial<ReconcileOptions> = {}, dies?: Death): Process {
    return new Process(this, options, dies)
  }

  /** What a change of ours means in the moment in which it is done. */
  judge({ ref, kind, ...change }: Change): void {
    const at = `${Math.round(this.clock.now())}: ${kind} ${ref.member}`
    if (ref.pool !== 'web' || STRANGERS.includes(ref.member)) this.wrong.push(`${at}: not ours`)
    const state = this.lb.state(ref)
    if (state === 'gone') return
    if (kind === 'remove' && this.lb.load(ref) > 0) this.wrong.push(`${at}: it has work`)
    if (kind === 'hold' && state === 'ready') this.#judgeFloor(ref.member, at)
    const opens = kind === 'restore' && (change as { to?: string }).to === 'ready'
    if (opens && this.closedBy.get(ref.member) === 'them')
      this.wrong.push(`${at}: we did not close it`)
  }

  /** A hold takes a place, unless it only puts back what a reload forgot. */
  #judgeFloor(member: string, at: string): void {
    if (this.#heldByUs.has(member)) return
    this.taken += 1
    if (this.clock.now() - this.#changedAt < ON_ITS_WAY) return
    const serving = [...OURS, ...STRANGERS].filter(
      (name) =>
        name !== member && this.lb.state(web(name)) === 'ready' && !this.#isToBePutBack(name),
    )
    const isGone = (name: string): boolean =>
      OURS.includes(name) && ['dead', 'absent', undefined].includes(this.wanted[name])
    // A member without an endpoint serves no client: it goes while one that counts is left, and does not count itself.
    const left = serving.filter((name) => !isGone(name)).length
    const least = isGone(member) ? 1 : KEEP
    if (left < least) this.wrong.push(`${at}: ${left} are left, at least ${least} must be`)
  }

  /** What a reload forgot is put back, unless it is to serve again, or was meanwhile: then it serves, and counts. */
  #isToBePutBack(name: string): boolean {
    return this.#heldByUs.has(name) && this.wanted[name] !== 'serve' && !this.#letGo.has(name)
  }

  /** After it: what we closed is ours to open. */
  note({ ref, kind }: Change, before: string, result: ChangeResult | undefined): void {
    const now = this.lb.state(ref)
    // Where it was closed already, a hold of ours is in place too: after a reload it is put back without a place.
    if (now === before && kind === 'hold' && result?.status === 'unchanged')
      this.#heldByUs.add(ref.member)
    if (now === before) return
    if (now === 'ready' || now === 'gone') this.closedBy.opened(ref.member)
    else this.closedBy.byUs(ref.member, now)
    this.#letGo.delete(ref.member)
    if (now === 'ready' || now === 'gone') this.#heldByUs.delete(ref.member)
    else this.#heldByUs.add(ref.member)
  }

  /** A put-back that is refused for good ends its drain: the next one asks for a place again. */
  refused({ kind, ref }: Change): void {
    if (kind === 'hold' && this.#heldByUs.has(ref.member)) this.#letGo.add(ref.member)
  }

  operate(member: string, to: 'ready' | 'drain' | 'maint'): void {
    const ref = web(member)
    const before = this.lb.state(ref)
    if (before === 'gone' || before === to) return
    this.lb.setBehind(ref, to)
    this.#changedAt = this.clock.now()
    this.#heldByUs.delete(member)
    // Who lowers our maint to drain has not closed it.
    const isLowered = to === 'drain' && before === 'maint' && this.closedBy.get(member) !== 'them'
    if (to === 'ready') this.#openedBehind(member, before)
    else if (isLowered)
      this.closedBy.loweredBehind(member, before, this.clock.now(), this.processes)
    else this.closedBy.byThem(member, to)
  }

  reload(): void {
    for (const name of OURS) this.#openedBehind(name, this.lb.state(web(name)))
    this.lb.reload()
  }

  #openedBehind(member: string, before: string): void {
    this.closedBy.openedBehind(member, before, this.clock.now(), this.processes)
  }

  /** It can be reached again: what was on its way since before arrives now. */
  connect(): void {
    this.lb.connect()
    this.#changedAt = this.clock.now()
  }

  begin(member: string): void {
    if (this.lb.state(web(member)) !== 'ready') return
    const ends = this.#ends.get(member) ?? []
    this.#ends.set(member, [...ends, this.lb.occupy(web(member))])
  }

  endWork(member?: string): void {
    for (const name of member === undefined ? OURS : [member]) {
      for (const end of this.#ends.get(name) ?? []) end()
      this.#ends.delete(name)
    }
  }

  want(): void {
    this.#changedAt = this.clock.now()
    const states: State[] = ['serve', 'serve', 'serve', 'drain', 'dead', 'absent']
    const left = OURS.filter(() => this.random(5) > 0)
    this.wanted = Object.fromEntries(
      left.map((name) => [name, states[this.random(states.length)] ?? 'serve']),
    )
    for (const name of this.#heldByUs) if (this.wanted[name] === 'serve') this.#letGo.add(name)
  }

  /** Where each of them is: one that was taken out is added at the same place again. */
  async learn(): Promise<void> {
    const { readings } = await this.clock.runUntil(
      this.lb.observe('all', { clock: this.clock, signal: new AbortController().signal }),
    )
    for (const one of readings) if (one.present) this.#places.set(one.ref.member, one)
  }

  set(loop: Reconciler): void {
    loop.set(
      desired(this.wanted).map((one) => {
        const { address, port } = this.#places.get(one.member ?? '') ?? {}
        return {
          ...one,
          ...(address === undefined ? {} : { address }),
          ...(port === undefined ? {} : { port }),
        }
      }),
      // Now and then a set has its drains end sooner or later: by the moment, so that the story stays the same.
      ENDINGS[Math.round(this.clock.now() / 100) % ENDINGS.length],
    )
  }
}

/**
 * A process dies at one of its calls to balancer and store: that one is carried out, or is not; it hears of none.
 * Looks one after another count once: nothing has changed between them.
 */
export interface Death {
  readonly at: number
  readonly last: 'done' | 'lost'
}

export class Process {
  readonly loop: Reconciler
  readonly #world: World
  readonly #death: Death | undefined
  readonly #leads: boolean
  #dead = false
  #calls = 0
  #hasLooked = false

  constructor(world: World, options: Partial<ReconcileOptions>, death?: Death) {
    this.#world = world
    this.#death = death
    this.#leads = options.lease !== undefined
    world.processes.add(this)
    this.loop = reconcile(this.#provider(world.lb), {
      pools: ['web'],
      owns: ({ ref }) => ref.member.startsWith('ctl-'),
      clock: world.clock,
      keepReady: KEEP,
      timeout: '20s',
      ...options,
      tickets: this.#store(options.tickets ?? world.store),
      ...(options.lease === undefined ? {} : { lease: this.#lease(options.lease) }),
    })
  }

  get isDead(): boolean {
    return this.#dead
  }

  /** As by SIGKILL: what was sent is done, nothing else is ever written or sent. */
  async kill(): Promise<void> {
    this.#die()
    await this.#world.clock.runUntil(this.loop.close())
  }

  #die(): void {
    this.#dead = true
    this.#world.processes.delete(this)
    this.#world.closedBy.died(this, this.#world.clock.now())
  }

  async #call<T>(call: () => Promise<T> | T, isLook = false): Promise<T> {
    const gone = new DrainableError('CONNECTION_LOST', 'the process is dead', { retryable: false })
    if (this.#dead) throw gone
    const isAnother = isLook && this.#hasLooked
    this.#hasLooked = isLook
    if (isAnother) return call()
    this.#calls += 1
    if (this.#death === undefined || this.#calls < this.#death.at) return call()
    this.#die()
    if (this.#death.last === 'done') await call()
    throw gone
  }

  /** The lease of a killed process runs out, since no process gives it up. */
  #lease(lease: Lease): Lease {
    const own = async <T>(call: () => Promise<T>): Promise<T> => {
      if (this.#dead) throw new Error('the process is dead')
      return call()
    }
    return {
      name: lease.name,
      acquire: (...args) => own(() => lease.acquire(...args)),
      renew: (...args) => own(() => lease.renew(...args)),
      release: (...args) => own(() => lease.release(...args)),
    }
  }

  #provider(lb: FakeProvider): DrainableProvider {
    return {
      specVersion: 1,
      name: lb.name,
      instance: lb.instance,
      describe: (ctx) => this.#call(() => lb.describe(ctx)),
      observe: (refs, ctx) => this.#call(() => this.#observe(refs, ctx), true),
      apply: (changes, ctx) => this.#call(() => this.#apply(changes, ctx)),
      close: () => Promise.resolve(),
      [Symbol.asyncDispose]: () => Promise.resolve(),
    }
  }

  async #observe(...asked: Parameters<FakeProvider['observe']>): Promise<Snapshot> {
    const { lb, clock, closedBy } = this.#world
    const askedAt = clock.now()
    const snapshot = await lb.observe(...asked)
    const members = snapshot.readings.map(({ ref }) => ref.member)
    // What it sees while its store fails may be known to none once it has died.
    if (!this.#dead && this.#world.storeFails === 0) closedBy.seen(this, members, askedAt)
    return snapshot
  }

  async #apply(changes: readonly Change[], ctx: CallContext): Promise<readonly ChangeResult[]> {
    const world = this.#world
    const { lb } = world
    if (this.#leads && !this.loop.leading) world.wrong.push(`a change by one that does not lead`)
    const before = changes.map(({ ref }) => lb.state(ref))
    for (const change of changes) world.judge(change)
    const answered = changes.map((change) => world.closedBy.sent(this, change))
    let results: readonly ChangeResult[] = []
    try {
      results = await lb.apply(changes, ctx)
      return results
    } finally {
      for (const [i, answer] of answered.entries()) answer(results[i], world.clock.now())
      changes.forEach((change, i) => {
        world.note(change, before[i] ?? '', results[i])
        if (results[i]?.status === 'rejected') world.refused(change)
      })
    }
  }

  #store(store: TicketStore): TicketStore {
    const world = this.#world
    const own = <T>(call: () => Promise<T> | T): Promise<T> =>
      this.#call(() => {
        if (world.storeFails === 0) return call()
        world.storeFails -= 1
        throw new Error('the store is down')
      })
    return {
      get: (k) => own(() => store.get(k)),
      set: (k, v) => own(() => store.set(k, v)),
      delete: (k) => own(() => store.delete(k)),
      keys: () => own(async () => (await store.keys?.()) as Iterable<string>),
    }
  }
}
