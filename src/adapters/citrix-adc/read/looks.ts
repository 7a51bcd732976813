import { RecentMap } from '../../../kit/recent-map.js'
import type { Clock } from '../../../provider/clock.js'
import type { CallContext } from '../../../provider/contract.js'
import type { NitroSession } from '../session/session.js'
import { Abilities } from './lists.js'
import type { Wishes } from './match.js'
import type { PoolState, Wanted } from './pool.js'
import { type Bound, type Facts, type Numbers, Reader, toPool } from './read.js'

/** Numbers that are from before a change of state are asked for so many times as often. */
const SOONER = 4

/** So much older counts may be while nothing happens, in milliseconds. */
const PATIENCE = 24_000

/** What was read last of one pool. */
interface Kept {
  readonly wish: string
  readonly facts: Facts
  readonly numbers: Numbers
  readonly signature: string
  /** Until when the numbers do. */
  readonly until: number
}

/** What a look is about. */
export interface LookOptions {
  /** Nothing that was read before is used. @default false */
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
  readonly #can = new Abilities()
  /** Moments of one clock mean nothing by another. */
  #kept = new WeakMap<Clock, RecentMap<string, Kept>>()

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
    const reader = new Reader(session, ctx, this.#can)
    const facts = await reader.everything()
    const wishes = new Map([...facts.keys()].map((name) => [name, 'all'] as const))
    const bound = await reader.bound(wishes, facts)
    const numbers = counts ? await reader.numbers(bound, true) : NO_NUMBERS
    const all = this.#of(ctx.clock)
    const pools = [...facts].flatMap(([name, of]) => {
      const found = bound.get(name)
      if (found === undefined || (of.group === undefined && found.total === 0)) return []
      // A look at some of them knows then to which virtual servers they are bound.
      if (all.get(name) === undefined) all.set(name, { ...NEVER, facts: of, numbers })
      return [toPool(name, of, found, numbers)]
    })
    return { pools, counted: counts }
  }

  /** Pools of these names. One that is not there is left out. */
  async at(
    wishes: Wishes,
    session: NitroSession,
    ctx: CallContext,
    { fresh = false, counts = true, patient = false }: LookOptions = {},
  ): Promise<Seen> {
    const reader = new Reader(session, ctx, this.#can)
    const all = this.#of(ctx.clock)
    if (!fresh) {
      const pools = await this.#glance(
        wishes,
        reader,
        all,
        ctx.clock.now() - (patient ? PATIENCE : 0),
      )
      if (pools !== undefined) return { pools, counted: false }
    }
    const facts = await reader.facts(wishes, all)
    const bound = await reader.bound(wishes, facts)
    const numbers = await reader.numbers(bound, counts)
    const pools: PoolState[] = []
    for (const name of wishes.keys()) {
      const [of, found, wanted] = [facts.get(name), bound.get(name), wishes.get(name)]
      if (of === undefined || found === undefined || wanted === undefined) {
        all.delete(name)
        continue
      }
      const pool = toPool(name, of, found, numbers)
      const lasts = isOld(pool, found) ? this.#freshness / SOONER : this.#freshness
      all.set(name, {
        wish: counts ? wishKey(wanted) : '',
        facts: of,
        numbers,
        signature: signatureOf(found),
        until: numbers.countedAt + lasts,
      })
      pools.push(pool)
    }
    return { pools, counted: counts }
  }

  /** The states alone, with the numbers of an earlier look; undefined where those do not do. */
  async #glance(
    wishes: Wishes,
    reader: Reader,
    all: RecentMap<string, Kept>,
    now: number,
  ): Promise<readonly PoolState[] | undefined> {
    const known = new Map<string, Facts>()
    for (const [name, wanted] of wishes) {
      const kept = all.get(name)
      if (kept?.wish !== wishKey(wanted) || now >= kept.until) return undefined
      known.set(name, kept.facts)
    }
    const bound = await reader.bound(wishes, known)
    const pools: PoolState[] = []
    for (const name of wishes.keys()) {
      const [found, kept] = [bound.get(name), all.get(name)]
      if (found === undefined || kept === undefined) return undefined
      if (signatureOf(found) !== kept.signature) return undefined
      pools.push(toPool(name, kept.facts, found, kept.numbers))
    }
    return pools
  }

  #of(clock: Clock): RecentMap<string, Kept> {
    const known = this.#kept.get(clock) ?? new RecentMap<string, Kept>()
    this.#kept.set(clock, known)
    return known
  }
}

const NO_NUMBERS: Numbers = { counts: new Map(), disabled: new Set(), countedAt: -Infinity }
/** Of a pool that was not looked at by its name. */
const NEVER = { wish: '', signature: '', until: -Infinity }

/** Tells one wish from another. */
function wishKey(wanted: Wanted): string {
  return wanted === 'all' ? '\0' : [...wanted].sort().join('\0')
}

/** Changes with the state of what is wanted. */
function signatureOf({ wanted }: Bound): string {
  return JSON.stringify(
    [...wanted].map((entry) => [
      entry.identity,
      entry.svrstate,
      entry.fingerprint,
      entry.trofsReason ?? '',
    ]),
  )
}

/** Whether numbers of something wanted are missing, or are those from before it left service. */
function isOld({ entries }: PoolState, { wanted }: Bound): boolean {
  return entries.some(
    ({ entry, counts }) =>
      wanted.has(entry) && (counts === undefined || (entry.phase !== 'in' && counts.up)),
  )
}
