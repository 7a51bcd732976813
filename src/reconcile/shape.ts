import type { PlannedChange } from '../provider/desired.js'
import type { PolicyData } from '../core/tickets/ticket.js'
import type { Wish } from '../endpoints/plan.js'
import { wallOf } from '../provider/clock.js'
import type { Capabilities } from '../provider/contract.js'
import type { MemberDrain } from './member-drain.js'
import type { WorkSpec } from './work-spec.js'

/** Beyond the proof itself, what a drain needs at least, in milliseconds. */
const LEAST_TIME = 2_000
/** A drain that is not waited for: only the hold itself, in milliseconds. */
const NO_WAIT = 2_000

/** How the drains of a set end: as `reconcile()` was given, or as the newest set says. */
export interface Ending {
  /** `false`: no work is waited for. */
  readonly waits: boolean
  /** Milliseconds; null for none. */
  readonly timeout: number | null
  readonly onTimeout: PolicyData['onTimeout']
}

/** How one call of a drain is to go. */
export interface DrainShape {
  readonly hold: 'drain' | 'maint'
  readonly keepReady: number
  /** What is left for it when it begins, in milliseconds; null for no limit. */
  readonly timeout: number | null
  readonly ending: Ending
  /** When its time is over, in epoch milliseconds; null for never. */
  readonly deadline: number | null
}

/** The drain of the member so far. */
type SoFar = Pick<MemberDrain, 'shape' | 'deadline' | 'since'>

/** How a drain is to go: as the plan has it, and no weaker than so far. */
export function shapeOf(
  {
    step,
    wish,
    drain,
  }: { readonly step: PlannedChange | undefined; readonly wish: Wish; readonly drain: SoFar },
  { policy: { data, clock }, capabilities }: WorkSpec,
  ending: Ending,
): DrainShape {
  const planned = step?.change.kind === 'hold' ? step.change.to : 'drain'
  const isMaint = [planned, data.hold, drain.shape?.hold].includes('maint')
  const floor = wish.state === 'gone' ? Math.min(1, data.keepReady) : data.keepReady
  const deadline = deadlineOf(ending, drain)
  const shape = {
    hold: isMaint ? ('maint' as const) : ('drain' as const),
    keepReady: step?.keepReady ?? floor,
    ending,
    deadline,
  }
  if (!ending.waits) return { ...shape, timeout: NO_WAIT }
  if (deadline === null || drain.deadline === null) return { ...shape, timeout: ending.timeout }
  // It goes on: what is left of its time, and enough for a proof.
  const left = Math.max(leastTime(data, capabilities), deadline - wallOf(clock))
  return { ...shape, timeout: Math.min(ending.timeout ?? left, left) }
}

/** What a drain needs at least, in milliseconds. */
export function leastTime(
  { settle }: Pick<PolicyData, 'settle'>,
  { blind, freshness }: Pick<Capabilities, 'blind' | 'freshness'>,
): number {
  return Math.max(settle, blind) + freshness + LEAST_TIME
}

/** One that goes on keeps its deadline, unless it is to end another way: then its time is counted from its beginning. */
function deadlineOf(ending: Ending, { shape, deadline, since }: SoFar): number | null {
  const timeout = ending.waits ? ending.timeout : NO_WAIT
  if (timeout === null) return null
  const counted = Date.parse(since) + timeout
  if (deadline === null) return counted
  if (shape === undefined) return Math.min(deadline, counted)
  return isSameEnding(shape.ending, ending) ? deadline : counted
}

export function isSameEnding(one: Ending, other: Ending): boolean {
  return (
    one.waits === other.waits && one.timeout === other.timeout && one.onTimeout === other.onTimeout
  )
}
