import { dueIn } from '../../machine/due.js'
import type { MachinePolicy } from '../../machine/policy.js'
import type { DrainState } from '../../machine/state.js'
import { FASTEST, nextPause, sharedPause } from './cadence.js'
import type { Scheduler } from './scheduler.js'

/** Pause between looks while a drain that is over is still held, in milliseconds. */
const HOLD_PAUSE = 100
/** The same while the caller's action runs: a reload that forgot the drain is to be seen soon. */
const ACTION_PAUSE = 20
/** Pause before the last look, where the one under way was asked for before the deadline. */
const LAST_PAUSE = 20
/** Pause while a member is opened, or is not held: it waits for a check, or for its turn. */
const SLOW_PAUSE = 100
/** While a drain is held, or an action runs, looks may take one part in that many of the time. */
const HELD_SHARE = 10
const ACTION_SHARE = 5
/** Looks a second for all balancers of a process whose drains' actions run: what a reload forgot is seen soon. */
const ACTION_LOOKS = 1_000

/** What the pause of a run depends on. */
export interface PauseInput {
  readonly states: readonly DrainState[]
  readonly policy: MachinePolicy | undefined
  readonly scheduler: Pick<Scheduler, 'cost' | 'floor' | 'lanes'>
  readonly now: number
  /** Looks that failed in a row. */
  readonly failures: number
  readonly held: boolean
  readonly acting: boolean
  /** No two looks are closer than that, unless something is due. Default: what the cadence says. */
  readonly fastest?: number
  /** The same by the caller's wish, in milliseconds. Default: none. */
  readonly pace?: number | undefined
}

/** How long a run waits before its next look. */
export function pauseOf(input: PauseInput): number {
  const { states, policy, now, failures, pace = 0 } = input
  const { cost, floor, lanes } = input.scheduler
  if (policy === undefined) return HOLD_PAUSE
  if (input.acting)
    return Math.max(ACTION_PAUSE, floor, cost * ACTION_SHARE, sharedPause(lanes, ACTION_LOOKS))
  if (input.held) return Math.max(HOLD_PAUSE, floor, cost * HELD_SHARE, pace, sharedPause(lanes))
  const pauses = states.map((state) => {
    if (isPastDeadline(state, now)) return Math.max(LAST_PAUSE, floor)
    const due = soon(dueIn(state, policy, now))
    const opening = state.goal.kind === 'open'
    // Of a member that is not held no last byte is waited for: it waits for its turn, or was let go of.
    const held = state.proof.effectiveSince !== null
    const fastest = opening || !held ? SLOW_PAUSE : (input.fastest ?? FASTEST)
    return nextPause({
      due: opening ? Math.min(due ?? SLOW_PAUSE, SLOW_PAUSE) : due,
      cost,
      floor,
      failures,
      lanes,
      fastest: Math.max(fastest, pace),
    })
  })
  return Math.min(...pauses)
}

/** What is due already was decided on at this look: the next is for what the balancer brings. */
function soon(due: number | null): number | null {
  return due === 0 ? LAST_PAUSE : due
}

function isPastDeadline({ ending, deadline, goal }: DrainState, now: number): boolean {
  if (ending.ended !== null || ending.terminateUntil !== null || goal.kind !== 'drain') return false
  return deadline !== null && now >= deadline
}
