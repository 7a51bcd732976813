import { systemClock, type Clock } from '../../../provider/clock.js'
import type { MemberRef } from '../../../provider/contract.js'
import { refKey } from '../../../provider/member-ref.js'
import type { LateChange } from '../../machine/state.js'

/** How long an unanswered hold may still take its member. */
export interface Coming {
  /** The clock of the run that sent it. */
  readonly clock: Pick<Clock, 'now'>
  /** Until when, if its call has ended. */
  readonly until: number
  /** How long it can take after the end of its call, in milliseconds. */
  readonly lateBound: number
}

interface Entry {
  readonly ref: MemberRef
  readonly clock: Coming['clock']
  readonly lateBound: number
  until: number
  /** The same by the machine's own clock, once the run's clock has thrown. */
  real?: number
  /** The number of calls in progress that change the member: while one goes on, its time has not begun. */
  calls: number
}

type ByMember = Map<string, Set<Entry>>

/** Members that the holds of ended runs may still take, by balancer. Copies of this module share them: plain data. */
const COMING = Symbol.for('drainable.coming.1')

export type ComingHolds = Map<string, ByMember>

export function comingHolds(): ComingHolds {
  const holder = globalThis as unknown as Record<symbol, ComingHolds | undefined>
  return (holder[COMING] ??= new Map<string, ByMember>())
}

/** Notes a hold whose run has ended, or no longer keeps anything up. */
export function noteComing(
  holds: ComingHolds,
  key: string,
  ref: MemberRef,
  { clock, until, lateBound }: Coming,
  calls: readonly Promise<void>[],
): void {
  const members = holds.get(key) ?? (new Map() as ByMember)
  holds.set(key, members)
  const entries = members.get(refKey(ref)) ?? new Set()
  members.set(refKey(ref), entries)
  const entry: Entry = { ref, clock, lateBound, until, calls: calls.length }
  entries.add(entry)
  const ended = (): void => {
    entry.calls -= 1
    entry.until = Math.max(entry.until, (nowOf(entry) ?? -Infinity) + lateBound)
  }
  for (const call of calls) void call.then(ended, ended)
}

/**
 * The time by the clock of its run, which may have ended because the clock throws: that must not affect other runs.
 */
function nowOf(entry: Entry): number | undefined {
  try {
    return entry.clock.now()
  } catch {
    entry.real ??= systemClock.now() + entry.lateBound
    return undefined
  }
}

function isOver(entry: Entry): boolean {
  const now = nowOf(entry)
  const over =
    entry.real === undefined
      ? now !== undefined && now >= entry.until
      : systemClock.now() >= entry.real
  return over && entry.calls === 0
}

/** Removes holds that another run knows from now on. */
export function takeComing(holds: ComingHolds, key: string, ref: MemberRef): void {
  holds.get(key)?.delete(refKey(ref))
}

/** Lists members that a hold may still take. */
export function stillComing(holds: ComingHolds, key: string): readonly MemberRef[] {
  const members = holds.get(key)
  if (members === undefined) return []
  const coming: MemberRef[] = []
  for (const [member, entries] of members) {
    for (const entry of entries) if (isOver(entry)) entries.delete(entry)
    const [first] = entries
    if (first === undefined) members.delete(member)
    else coming.push(first.ref)
  }
  if (members.size === 0) holds.delete(key)
  return coming
}

export function isHold({ change }: LateChange): boolean {
  return change.kind === 'hold'
}

/** Whether a late change is a hold that may still take its member. */
export function mayCome(late: LateChange): boolean {
  return isHold(late) && late.refused !== true
}
