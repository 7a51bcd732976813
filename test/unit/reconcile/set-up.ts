import {
  reconcile,
  type DesiredMember,
  type ReconcileOptions,
  type Reconciler,
  type TicketStore,
} from 'drainable'
import { fakeClock, fakeProvider, type FakeClock, type FakeProvider } from 'drainable/testing'

export type State = DesiredMember['state'] | 'dead'

export function web(member: string): { readonly pool: string; readonly member: string } {
  return { pool: 'web', member }
}

/** A set by name: `dead` is drained and does not answer any more. */
export function desired(wanted: Readonly<Record<string, State>>, pool = 'web'): DesiredMember[] {
  return Object.entries(wanted).map(([member, state]) =>
    state === 'dead' ? { pool, member, state: 'drain', serving: false } : { pool, member, state },
  )
}

/** A store that outlives its controllers. */
export function memoryStore(): TicketStore & { readonly kept: Map<string, unknown> } {
  const kept = new Map<string, unknown>()
  return {
    kept,
    get: async (k) => structuredClone(kept.get(k)),
    set: async (k, v) => void kept.set(k, structuredClone(v)),
    delete: async (k) => kept.delete(k),
    keys: () => kept.keys(),
  }
}

/** One whose calls take that long, in milliseconds. */
export function slowStore(clock: FakeClock, ms: number): ReturnType<typeof memoryStore> {
  const store = memoryStore()
  const slowly = async <T>(call: () => T): Promise<T> => {
    await new Promise<void>((resolve) => void clock.setTimeout(resolve, ms))
    return call()
  }
  return {
    kept: store.kept,
    get: (key) => slowly(() => store.get(key)),
    set: (key, value) => slowly(() => store.set(key, value)),
    delete: (key) => slowly(() => store.delete(key)),
    keys: () => store.kept.keys(),
  }
}

export interface Bench {
  readonly clock: FakeClock
  readonly lb: FakeProvider
  readonly tickets: ReturnType<typeof memoryStore>
  start(options?: Partial<ReconcileOptions>): Reconciler
  /** One that was given its set, and has reached it. */
  settled(set: readonly DesiredMember[], options?: Partial<ReconcileOptions>): Promise<Reconciler>
  states(...names: string[]): string[]
  /** Changes that were asked for so far: `hold web1`. */
  sent(): string[]
}

export function bench(...members: string[]): Bench {
  return slowBench(0, ...members)
}

/** @param latency - how long each call takes, in milliseconds */
export function slowBench(latency: number, ...members: string[]): Bench {
  const clock = fakeClock()
  const lb = fakeProvider({ pools: { web: members, other: ['x1', 'x2'] }, clock, latency })
  const tickets = memoryStore()
  const start: Bench['start'] = (options = {}) =>
    reconcile(lb, { pools: ['web'], owns: () => true, tickets, clock, ...options })
  return {
    clock,
    lb,
    tickets,
    start,
    settled: async (set, options) => {
      const loop = start(options)
      loop.set(set)
      await clock.runUntil(loop.settled())
      return loop
    },
    states: (...names) => names.map((name) => lb.state(web(name))),
    sent: () =>
      lb.requests.flatMap(({ changes = [] }) =>
        changes.map((change) => {
          const to = 'to' in change ? ` ${change.to}` : ''
          return `${change.kind} ${change.ref.member}${to}`
        }),
      ),
  }
}
