import type {
  Change,
  DrainableProvider,
  PresentReading,
  ReconcileOptions,
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
const STRANGERS = ['vm', 'backup']
const KEEP = 1

/** A balancer with a hidden truth: who set what, and what every change of ours did in that moment. */
export class World {
  readonly random: (n: number) => number
  readonly clock: FakeClock = fakeClock()
  readonly lb: FakeProvider
  readonly store = memoryStore()
  readonly lease = fakeLease({ clock: this.clock })
  readonly wrong: string[] = []
  /** Who closed a member that is not ready: us, or somebody else. */
  readonly #closedBy = new Map<string, 'us' | 'them'>()
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
      capabilities: { lateBound: 300, blind: random(2) * 200 },
      latency: random(3) * 5,
    })
  }

  /** One process: nothing of it reaches anything once it is killed. */
  process(options: Partial<ReconcileOptions> = {}, lives = Infinity): Process {
    return new Process(this, options, lives)
  }

  /** What a change of ours means in the moment in which it is done. */
  judge({ ref, kind, ...change }: Change): void {
    const at = `${Math.round(this.clock.now())}: ${kind} ${ref.member}`
    if (ref.pool !== 'web' || STRANGERS.includes(ref.member)) this.wrong.push(`${at}: not ours`)
    const state = this.lb.state(ref)
    if (state === 'gone') return
    if (kind === 'remove' && this.lb.load(ref) > 0) this.wrong.push(`${at}: it has work`)
    if (kind === 'hold' && state === 'ready') {
      const others = [...OURS, ...STRANGERS].filter((name) => name !== ref.member)
      const serving = others.filter((name) => this.lb.state(web(name)) === 'ready')
      if (serving.length < KEEP) this.wrong.push(`${at}: nobody is left`)
    }
    const opens = kind === 'restore' && (change as { to?: string }).to === 'ready'
    if (opens && this.#closedBy.get(ref.member) === 'them')
      this.wrong.push(`${at}: we did not close it`)
  }

  /** After it: what we closed is ours to open. */
  note(ref: Change['ref'], before: string): void {
    const now = this.lb.state(ref)
    if (now === before) return
    if (now === 'ready' || now === 'gone') this.#closedBy.delete(ref.member)
    else if (this.#closedBy.get(ref.member) !== 'them') this.#closedBy.set(ref.member, 'us')
  }

  operate(member: string, to: 'ready' | 'drain' | 'maint'): void {
    const ref = web(member)
    const before = this.lb.state(ref)
    if (before === 'gone' || before === to) return
    this.lb.setBehind(ref, to)
    if (to === 'ready') this.#closedBy.delete(member)
    else this.#closedBy.set(member, 'them')
  }

  reload(): void {
    this.lb.reload()
    this.#closedBy.clear()
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
    const states: State[] = ['serve', 'serve', 'serve', 'drain', 'dead', 'absent']
    const left = OURS.filter(() => this.random(5) > 0)
    this.wanted = Object.fromEntries(
      left.map((name) => [name, states[this.random(states.length)] ?? 'serve']),
    )
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
    )
  }
}

export class Process {
  readonly loop: Reconciler
  readonly #world: World
  #dead = false
  #lives: number

  /** @param lives - so many calls to balancer and store are made: the last one is done, and nobody hears of it */
  constructor(world: World, options: Partial<ReconcileOptions>, lives: number) {
    this.#world = world
    this.#lives = lives
    this.loop = reconcile(this.#provider(world.lb), {
      pools: ['web'],
      owns: ({ ref }) => ref.member.startsWith('ctl-'),
      tickets: this.#store(world.store),
      clock: world.clock,
      keepReady: KEEP,
      timeout: '20s',
      ...options,
    })
  }

  get isDead(): boolean {
    return this.#dead
  }

  /** As by SIGKILL: what was sent is done, nothing else is ever written or sent. */
  async kill(): Promise<void> {
    this.#dead = true
    await this.#world.clock.runUntil(this.loop.close())
  }

  #alive(): void {
    if (this.#dead)
      throw new DrainableError('CONNECTION_LOST', 'the process is dead', { retryable: false })
    this.#lives -= 1
    if (this.#lives <= 0) this.#dead = true
  }

  #provider(lb: FakeProvider): DrainableProvider {
    const world = this.#world
    return {
      specVersion: 1,
      name: lb.name,
      instance: lb.instance,
      describe: async (ctx) => (this.#alive(), lb.describe(ctx)),
      observe: async (refs, ctx) => (this.#alive(), lb.observe(refs, ctx)),
      apply: async (changes, ctx) => {
        this.#alive()
        const before = changes.map(({ ref }) => lb.state(ref))
        for (const change of changes) world.judge(change)
        try {
          return await lb.apply(changes, ctx)
        } finally {
          changes.forEach(({ ref }, i) => world.note(ref, before[i] ?? ''))
        }
      },
      close: () => Promise.resolve(),
      [Symbol.asyncDispose]: () => Promise.resolve(),
    }
  }

  #store(store: TicketStore): TicketStore {
    const world = this.#world
    const gate = (): void => {
      this.#alive()
      if (world.storeFails > 0) {
        world.storeFails -= 1
        throw new Error('the store is down')
      }
    }
    return {
      get: async (k) => (gate(), store.get(k)),
      set: async (k, v) => (gate(), store.set(k, v)),
      delete: async (k) => (gate(), store.delete(k)),
      keys: () => (gate(), store.keys?.() ?? []),
    }
  }
}
