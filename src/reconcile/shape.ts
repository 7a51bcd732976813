import type { PlannedChange } from '../provider/desired.js'
import type { ResolvedPolicy } from '../core/calls/policy.js'
import { isSame } from '../core/tickets/member.js'
import type { PolicyData, Ticket } from '../core/tickets/ticket.js'
import type { Wish } from '../endpoints/plan.js'
import { wallOf } from '../provider/clock.js'
import type { Capabilities, PresentReading, Reading } from '../provider/contract.js'
import type { DrainShape } from './member-drain.js'

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

/** A drain of the same member that the new one takes the place of. */
export interface EarlierDrain {
  /** Epoch milliseconds; null for none. */
  readonly deadline: number | null
  /** ISO 8601. */
  readonly since: string
  readonly shape?: Pick<DrainShape, 'hold' | 'ending'>
}

/** What an earlier process has begun of a member, by its ticket; undefined where that is of another one. */
export function earlierOf(
  ticket: Ticket | undefined,
  reading: PresentReading,
): EarlierDrain | undefined {
  const [member] = ticket?.members ?? []
  if (ticket === undefined || member === undefined || !isSame(member, reading)) return undefined
  const deadline = ticket.deadline === null ? null : Date.parse(ticket.deadline)
  return { deadline, since: ticket.startedAt }
}

/** Of a look's readings those of members that are drained, in this life or by the word of a ticket. */
export function drainedIn(
  readings: ReadonlyMap<string, Reading>,
  drains: ReadonlyMap<string, { isOf(reading: Reading): boolean }>,
  tickets: ReadonlyMap<string, Ticket>,
): ReadonlySet<Reading> {
  const drained = new Set<Reading>()
  for (const [key, drain] of drains) {
    const reading = readings.get(key)
    if (reading !== undefined && drain.isOf(reading)) drained.add(reading)
  }
  for (const [key, ticket] of tickets) {
    const reading = readings.get(key)
    if (reading?.present === true && earlierOf(ticket, reading) !== undefined) drained.add(reading)
  }
  return drained
}

/** How a drain is to go: as the plan has it, and no weaker than the one before it. */
export function shapeOf(
  {
    step,
    wish,
    before,
  }: {
    readonly step: PlannedChange | undefined
    readonly wish: Wish
    readonly before: EarlierDrain | undefined
  },
  {
    policy,
    ending,
    capabilities,
  }: {
    readonly policy: ResolvedPolicy
    readonly ending: Ending
    readonly capabilities: Capabilities
  },
): DrainShape {
  const { data } = policy
  const planned = step?.change.kind === 'hold' ? step.change.to : 'drain'
  const isMaint = [planned, data.hold, before?.shape?.hold].includes('maint')
  const floor = wish.state === 'gone' ? Math.min(1, data.keepReady) : data.keepReady
  const now = wallOf(policy.clock)
  const deadline = deadlineOf(ending, before, now)
  const shape = {
    hold: isMaint ? ('maint' as const) : ('drain' as const),
    keepReady: step?.keepReady ?? floor,
    ending,
    deadline,
  }
  if (!ending.waits) return { ...shape, timeout: NO_WAIT }
  if (deadline === null || before?.deadline == null) return { ...shape, timeout: ending.timeout }
  // It goes on: what is left of its time, and enough for a proof.
  const left = Math.max(leastTime(data, capabilities), deadline - now)
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
function deadlineOf(ending: Ending, before: EarlierDrain | undefined, now: number): number | null {
  const timeout = ending.waits ? ending.timeout : NO_WAIT
  if (timeout === null) return null
  if (before === undefined) return now + timeout
  const known = before.shape === undefined || isSameEnding(before.shape.ending, ending)
  const counted = Date.parse(before.since) + timeout
  if (!known || before.deadline === null) return counted
  // Of an earlier process, which may have had another timeout.
  return before.shape === undefined ? Math.min(before.deadline, counted) : before.deadline
}

export function isSameEnding(one: Ending, other: Ending): boolean {
  return (
    one.waits === other.waits && one.timeout === other.timeout && one.onTimeout === other.onTimeout
  )
}
