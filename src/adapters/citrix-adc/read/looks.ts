import type { Clock } from '../../../provider/clock.js'
import type { CallContext } from '../../../provider/contract.js'
import type { NitroSession } from '../session/session.js'
import { Wanted } from './match.js'
import { type Facts, type Numbers, type PoolState, Reader, toPools, type Wishes } from './read.js'

/** Numbers that are from before a change of state are asked for so many times as often. */
const SOONER = 4

/** So much older counts may be while nothing happens, in milliseconds. */
const PATIENCE = 24_000

/** What was read last for the same wishes. */
interface Kept {
  readonly facts: Map<string, Facts>
  readonly numbers: Numbers
  readonly signature: string
  /** Until when the numbers do. */
  readonly until: number
}

/** What a look is about. */
export interface LookOptions {
  /** Nothing that was read before is used, now or later: a change is about to be sent. @default false */
  readonly fresh?: boolean
  /** Whether counts are wanted. @default true */
  readonly counts?: boolean
  /** Nothing has happened for a while, so older counts do. @default false */
  readonly patient?: boolean
}

/** What one look saw. */
export interface Seen {
  readonly pools: readonly PoolState[]
  /** Whether counts were asked for: else they are those of an earlier look. */
  readonly counted: boolean
}

/**
 * Looks at pools, and asks no more often than it is of use: for the state of members at each look; for what
 * they count, which repeats itself for seconds, and for what seldom changes (kinds, flush, server objects)
 * as often as counts change, and whenever a state has moved.
 */
export class Looks {
  readonly #freshness: number
  readonly #readers = new WeakMap<NitroSession, Reader>()
  /** Moments of one clock mean nothing by another. */
  #kept = new WeakMap<Clock, Map<string, Kept>>()

  constructor(freshness: number) {
    this.#freshness = freshness
  }

  /** Something was written, or another node is in charge: all is read anew. */
  forget(): void {
    this.#kept = new WeakMap()
  }

  /**
   * Every pool.
   *
   * @param counts - `false`: who is there, and no numbers
   */
  async everything(session: NitroSession, ctx: CallContext, counts = true): Promise<Seen> {
    const reader = this.#reader(session)
    const facts = await reader.everything(ctx)
    const wishes = new Map([...facts.keys()].map((name) => [name, new Wanted('all')]))
    const bound = await reader.bound(wishes, facts, ctx)
    const numbers = counts
      ? await reader.numbers(wishes, bound, true, ctx)
      : { counts: new Map(), disabled: new Set<string>(), countedAt: -Infinity }
    const pools = toPools(bound, numbers)
    const isUsed = ({ name, total }: PoolState): boolean =>
      total > 0 || facts.get(name)?.group !== undefined
    return { pools: pools.filter(isUsed), counted: counts }
  }

  /** Pools of these names. One that is not there is left out. */
  async at(
    wishes: Wishes,
    session: NitroSession,
    ctx: CallContext,
    { fresh = false, counts = true, patient = false }: LookOptions = {},
  ): Promise<Seen> {
    const reader = this.#reader(session)
    const all = this.#kept.get(ctx.clock) ?? new Map<string, Kept>()
    this.#kept.set(ctx.clock, all)
    const key = JSON.stringify([...wishes].map(([name, { names }]) => [name, names]))
    const kept = fresh ? undefined : all.get(key)
    if (kept !== undefined && ctx.clock.now() - (patient ? PATIENCE : 0) < kept.until) {
      const bound = await reader.bound(wishes, kept.facts, ctx)
      const pools = toPools(bound, kept.numbers)
      const isSame = pools.length === wishes.size && signatureOf(pools, wishes) === kept.signature
      if (isSame) return { pools, counted: false }
    }
    const facts = await reader.facts(wishes, ctx)
    const bound = await reader.bound(wishes, facts, ctx)
    const numbers = await reader.numbers(wishes, bound, counts, ctx)
    const pools = toPools(bound, numbers)
    if (fresh) all.clear()
    if (counts) {
      const isOld = pools.some((pool) => hasOldNumbers(pool, wishes))
      const until = numbers.countedAt + (isOld ? this.#freshness / SOONER : this.#freshness)
      for (const [old, one] of all) if (one.until + PATIENCE < numbers.countedAt) all.delete(old)
      all.set(key, { facts, numbers, signature: signatureOf(pools, wishes), until })
    }
    return { pools, counted: counts }
  }

  #reader(session: NitroSession): Reader {
    const reader = this.#readers.get(session) ?? new Reader(session)
    this.#readers.set(session, reader)
    return reader
  }
}

/** Changes with the state of what is wanted. */
function signatureOf(pools: readonly PoolState[], wishes: Wishes): string {
  return JSON.stringify(
    pools.map(({ name, entries }) =>
      entries.flatMap(({ entry }) =>
        wishes.get(name)?.has(entry) === true
          ? [[entry.identity, entry.svrstate, entry.fingerprint, entry.trofsReason ?? '']]
          : [],
      ),
    ),
  )
}

/** Whether numbers of something wanted are missing, or are those from before it left service. */
function hasOldNumbers({ name, entries }: PoolState, wishes: Wishes): boolean {
  return entries.some(
    ({ entry, counts }) =>
      wishes.get(name)?.has(entry) === true &&
      (counts === undefined || (entry.phase !== 'in' && counts.up)),
  )
}
