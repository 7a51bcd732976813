import { randomUUID } from 'node:crypto'
import {
  DrainableError,
  type Change,
  type DrainableProvider,
  type MemberRef,
  type Reading,
  type Snapshot,
  type TicketStore,
} from 'drainable'
import type { FakeClock, FakeProvider } from 'drainable/testing'
import { setUp } from './set-up.js'

/** A clock that stands still and a balancer in memory. */
export type Rig = ReturnType<typeof setUp>

/** A clock and a balancer that no other test knows. */
export function rig(options: Parameters<typeof setUp>[0] = {}): Rig {
  return setUp({ instance: randomUUID(), ...options })
}

/** What another process would read: JSON, nothing else. */
export function json<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T
}

/** A ticket store in memory. */
export function memoryStore(): TicketStore & { readonly map: Map<string, unknown> } {
  const map = new Map<string, unknown>()
  return {
    map,
    get: async (key) => map.get(key),
    set: async (key, value) => map.set(key, json(value)),
    delete: async (key) => map.delete(key),
  }
}

/** A second provider object for one balancer, and what was asked of it. */
export interface AnotherObject extends DrainableProvider {
  readonly looks: readonly (readonly MemberRef[] | 'all')[]
  readonly descriptions: () => number
}

/**
 * A second provider object for the same balancer, as another part of the process would make it.
 *
 * @param before - called before each reading call; what it throws is the answer
 */
export function anotherObject(
  lb: FakeProvider,
  before: (verb: 'describe' | 'observe') => void = () => undefined,
): AnotherObject {
  const looks: (readonly MemberRef[] | 'all')[] = []
  let descriptions = 0
  return {
    specVersion: 1,
    name: lb.name,
    instance: lb.instance,
    looks,
    descriptions: () => descriptions,
    describe: async (ctx) => {
      descriptions += 1
      before('describe')
      return lb.describe(ctx)
    },
    observe: async (refs, ctx) => {
      looks.push(refs)
      before('observe')
      return lb.observe(refs, ctx)
    },
    apply: (changes, ctx) => lb.apply(changes, ctx),
    close: async () => undefined,
    [Symbol.asyncDispose]: async () => undefined,
  }
}

/** One change as the core asked for it. */
export interface Sent {
  readonly at: number
  readonly change: Change
}

/** Records every change the core asks for, also one whose call is lost. Call it after the other wrappers. */
export function recordChanges(lb: FakeProvider, clock: FakeClock): readonly Sent[] {
  const sent: Sent[] = []
  const apply = lb.apply.bind(lb)
  lb.apply = (changes, ctx) => {
    for (const change of changes) sent.push({ at: clock.now(), change })
    return apply(changes, ctx)
  }
  return sent
}

/** The changes of one kind. */
export function ofKind(sent: readonly Sent[], kind: Change['kind']): readonly Sent[] {
  return sent.filter(({ change }) => change.kind === kind)
}

/**
 * The answer to the first call with such a change is lost.
 *
 * @param late - how long after the call the balancer carries it out all the same; left out: never
 */
export function loseAnswer(
  lb: FakeProvider,
  clock: FakeClock,
  which: (change: Change) => boolean,
  late?: number,
): void {
  const apply = lb.apply.bind(lb)
  let lost = false
  lb.apply = (changes, ctx) => {
    if (lost || !changes.some(which)) return apply(changes, ctx)
    lost = true
    if (late !== undefined) {
      const context = { signal: new AbortController().signal, clock }
      clock.setTimeout(() => void apply(changes, context), late)
    }
    return Promise.reject(new DrainableError('CONNECTION_LOST', 'the answer was lost'))
  }
}

export const isHold = (change: Change): boolean => change.kind === 'hold'
export const isSeal = (change: Change): boolean => change.kind === 'hold' && change.to === 'maint'
export const isOpening = (change: Change): boolean =>
  change.kind === 'restore' && change.to === 'ready'

/** Runs something of another client right after the first such change was carried out. */
export function after(
  lb: FakeProvider,
  which: (change: Change) => boolean,
  then: () => void,
): void {
  const apply = lb.apply.bind(lb)
  let done = false
  lb.apply = async (changes, ctx) => {
    const results = await apply(changes, ctx)
    if (!done && changes.some(which)) {
      done = true
      then()
    }
    return results
  }
}

/** Every look from now on is shown as `change` leaves it. */
export function showAs(
  lb: FakeProvider,
  change: (reading: Reading) => Reading,
  more: Partial<Snapshot> = {},
): void {
  const observe = lb.observe.bind(lb)
  lb.observe = async (refs, ctx) => {
    const { readings, pools } = await observe(refs, ctx)
    return { readings: readings.map(change), pools, ...more }
  }
}

/** The reading without one of its processes. */
export function without(reading: Reading, scope: string): Reading {
  return { ...reading, scopes: reading.scopes.filter((listed) => listed.scope !== scope) }
}
