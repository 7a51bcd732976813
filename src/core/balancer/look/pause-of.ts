import { dueIn } from '../../member/time/due.js'
import type { Claim } from '../../member/record.js'
import type { Sight } from '../../member/sight.js'
import { FASTEST, nextPause, sharedPause } from './cadence.js'
import type { Scheduler } from './scheduler.js'

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
  readonly sights: readonly Sight[]
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
  const { sights, now, failures, pace = 0 } = input
  const { cost, floor, lanes, rested } = input.scheduler
  if (sights.length === 0) return HOLD_PAUSE
  if (input.acting)
    return Math.max(ACTION_PAUSE, floor, cost * ACTION_SHARE, sharedPause(lanes, ACTION_LOOKS))
  if (input.held) return Math.max(HOLD_PAUSE, floor, cost * HELD_SHARE, pace, sharedPause(lanes))
  const pauses = sights.map((sight) => {
    const { claim } = sight
    if (isPastDeadline(claim, now)) return Math.max(LAST_PAUSE, floor)
    const due = soon(dueIn(sight, now))
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
