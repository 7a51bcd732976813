import type { Clock } from '../../../provider/clock.js'
import { dueIn } from '../../member/time/deadline.js'
import type { Claim } from '../../member/record.js'
import type { ClaimedMember } from '../../member/claimed.js'
import type { Scheduler } from './scheduler.js'

/** The input for the pause before the next look, in milliseconds. */
export interface CadenceInput {
  /** Time until something can change by time alone (a quiet time, a deadline). Null: nothing is due. */
  readonly due: number | null
  /** How long one look takes at present. */
  readonly cost: number
  /** The provider's floor. */
  readonly floor: number
  /** Looks that failed in a row. */
  readonly failures: number
  /** The shortest pause between two looks, unless something is due. Default: 10. */
  readonly fastest?: number
  /** How many balancers this process looks at now, including this one. Default: 1. */
  readonly lanes?: number
  /** How long the pause before the last look was. Default: 0. */
  readonly rested?: number
}

/** The shortest pause between two looks, in milliseconds. */
export const FASTEST = 10
/**
 * The most looks a second for all balancers of a process together: one look costs the process little, but many
 * balancers add up.
 */
const LOOKS = 250
/**
 * The longest pause between looks at a member under drain, unless a look itself takes longer or the caller wants a
 * slower pace.
 */
const SLOWEST = 1_000
/**
 * The pause as a multiple of what a look takes beyond {@link WAKE}: dear looks take about a thirtieth of the time.
 */
const PACE = 30
/**
 * The part of a look in which the process waits to run again, in milliseconds. It costs nobody anything, and it grows
 * with the pause, because caches and clock rate go down meanwhile. If it counted, a long pause would make looks slow,
 * and slow looks the pause long.
 */
const WAKE = 0.3
/**
 * The pause after a look, as a multiple of what it takes. Where that is longer than {@link SLOWEST}, a look that is due
 * may come sooner, if there was such a pause before the last one: looks then take at most a third of the time.
 */
const SHARE = 4

/** The pause by a balancer's share of a process's looks: 8 ms with two balancers, 200 ms with fifty. */
export function sharedPause(lanes: number, looks = LOOKS): number {
  return (1_000 / looks) * lanes
}

/**
 * The pause before the next look at a member. It depends on the cost of a look, so that the last byte is seen as soon
 * after an hour as after a second: on a local socket every 10 ms, on an appliance once a second. Many balancers in
 * one process slow each other down. It is never shorter than the provider's minimum.
 *
 * A due time gets its look exactly then: a look shortly before, which would delay it, is left out.
 */
export function nextPause(input: CadenceInput): number {
  const { due, cost, floor, failures, fastest = FASTEST, lanes = 1, rested = 0 } = input
  const share = cost * SHARE
  const least = Math.max(floor, share)
  if (failures > 0) return Math.max(least, fastest, Math.min(SLOWEST, 100 * 2 ** (failures - 1)))
  const asked = Math.max((cost - WAKE) * PACE, sharedPause(lanes))
  const paced = Math.max(fastest, Math.min(SLOWEST, asked))
  const soonest = Math.max(1, due ?? Infinity)
  const pause = Math.max(least, Math.min(paced, soonest))
  if (share > SLOWEST && soonest < pause && rested >= share) return Math.max(floor, soonest)
  return due !== null && due > pause && due < pause + cost + least ? due : pause
}

/** At least so many looks are compared, and all of this time, in milliseconds. */
const COMPARED = 3
const RECENT = 250

interface Cost {
  readonly at: number
  readonly took: number
}

/**
 * What a look takes at present: the least of the recent ones. A look that waited for a change of ours, or for a
 * processor on a busy machine, does not show the cost of a look.
 */
export class Costs {
  #recent: readonly Cost[] = []

  /**
   * @param at - when the look ended
   * @param took - how long it took, in milliseconds
   */
  add(at: number, took: number): void {
    const kept = this.#recent.filter(
      (cost, index, all) => index > all.length - COMPARED || cost.at > at - RECENT,
    )
    this.#recent = [...kept, { at, took }]
  }

  /** 0 before the first look. */
  get lowest(): number {
    return this.#recent.length === 0 ? 0 : Math.min(...this.#recent.map(({ took }) => took))
  }
}

const lanes = new WeakMap<Clock, number>()

/** How many balancers are looked at now by that clock: they share one processor. */
export function lanesOf(clock: Clock): number {
  return lanes.get(clock) ?? 0
}

/** Counts a balancer that is looked at from now on (1), or no longer (-1). */
export function countLane(clock: Clock, by: 1 | -1): void {
  lanes.set(clock, lanesOf(clock) + by)
}

/** Pause between looks while a finished drain is held, in milliseconds. */
const HOLD_PAUSE = 100
/** The same while the caller's action runs: a reload that lost the drain must be seen soon. */
const ACTION_PAUSE = 20
/** Pause before the last look, if the pending one was asked for before the deadline. */
const LAST_PAUSE = 20
/** Pause while a member is being opened, or is not held: it waits for a check, or for a place. */
const SLOW_PAUSE = 100
/** While a drain is held, or an action runs, looks take at most one part in this many of the time. */
const HELD_SHARE = 10
const ACTION_SHARE = 5
/**
 * The most looks a second for all balancers of a process while actions run: a drain lost in a reload is still seen
 * soon.
 */
const ACTION_LOOKS = 1_000

/** The input for the pause of a run. */
export interface PauseInput {
  readonly claimedMembers: readonly ClaimedMember[]
  readonly scheduler: Pick<Scheduler, 'cost' | 'floor' | 'lanes' | 'rested'>
  readonly now: number
  /** Looks that failed in a row. */
  readonly failures: number
  readonly held: boolean
  readonly acting: boolean
  /** The shortest pause between two looks, unless something is due. Default: that of the cadence. */
  readonly fastest?: number
  /** The caller's shortest pause, in milliseconds. Default: none. */
  readonly pace?: number | undefined
}

/** How long a run waits before its next look. */
export function pauseOf(input: PauseInput): number {
  const { claimedMembers, now, failures, pace = 0 } = input
  const { cost, floor, lanes, rested } = input.scheduler
  if (claimedMembers.length === 0) return HOLD_PAUSE
  if (input.acting)
    return Math.max(ACTION_PAUSE, floor, cost * ACTION_SHARE, sharedPause(lanes, ACTION_LOOKS))
  if (input.held) return Math.max(HOLD_PAUSE, floor, cost * HELD_SHARE, pace, sharedPause(lanes))
  const pauses = claimedMembers.map((claimed) => {
    const { claim } = claimed
    if (isPastDeadline(claim, now)) return Math.max(LAST_PAUSE, floor)
    const due = soon(dueIn(claimed, now))
    const opening = claim.goal.kind === 'open'
    // The last byte of a member that is not held does not matter: it waits for a place, or was let go.
    const held = claim.proof.effectiveSince !== null
    const fastest = opening || !held ? SLOW_PAUSE : (input.fastest ?? FASTEST)
    return nextPause({
      due: opening ? Math.min(due ?? SLOW_PAUSE, SLOW_PAUSE) : due,
      cost,
      floor,
      failures,
      lanes,
      rested,
      fastest: Math.max(fastest, pace),
    })
  })
  return Math.min(...pauses)
}

/** Drops a due time that has passed: this look has decided it, and the next one is for news from the balancer. */
function soon(due: number | null): number | null {
  return due === 0 ? LAST_PAUSE : due
}

function isPastDeadline({ ending, deadline, goal }: Claim, now: number): boolean {
  if (ending.ended !== null || ending.terminateUntil !== null || goal.kind !== 'drain') return false
  return deadline !== null && now >= deadline
}

/** Shortest pause between two looks at everything, in milliseconds: a look may be large. */
const SHORTEST_SEARCH = 1_000
/** Looks at everything take at most one part in this many of the time ... */
const SEARCH_SHARE = 100
/** ... unless that hid a drain for longer than this, in milliseconds. */
const LONGEST_SEARCH = 60_000

/**
 * The pause before the next look at everything, in milliseconds.
 *
 * One slow look says little of the balancer: a machine stood still, or a call ran into its limit. So the faster of two counts.
 *
 * @param took - how long the last look took, ms
 * @param before - how long the one before it took, ms
 */
export function searchPause(took: number, before = Infinity): number {
  return Math.min(LONGEST_SEARCH, Math.max(SHORTEST_SEARCH, SEARCH_SHARE * Math.min(took, before)))
}
