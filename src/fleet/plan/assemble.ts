import { atLeast, refKey } from '../../provider/member-ref.js'
import type { PresentReading } from '../../provider/contract.js'
import { formatDuration } from '../../provider/duration.js'
import type { DrainableError } from '../../provider/error.js'
import { formatPlan, type HeldBack, type Plan, type PlannedChange } from '../../provider/desired.js'
import type { PolicyData } from '../../core/tickets/ticket.js'
import type { Judged } from './judge.js'
import { describeDrain } from './words.js'

/** The plan of a drain or a roll: what it would do. */
export interface DrainPlan extends Plan {
  /**
   * The errors that would refuse the call before anything is changed; empty if it would begin. A roll that the floor lets take
   * none of its servers is refused by it.
   */
  readonly refused: readonly DrainableError[]
  /**
   * How long it takes to idle, in milliseconds. `least`: with no work in flight. `most`: its deadline, null for none.
   * For a roll, the time of all its drains, batch after batch, without `act` and health checks.
   */
  readonly expected: { readonly least: number; readonly most: number | null }
  /** Whether it is the plan of a drain or of a roll. `carryOut` refuses the plan of a roll: `roll` carries it out. */
  readonly kind: 'drain' | 'roll'
  /** The whole plan for people, as {@link formatPlan} formats it. */
  readonly text: string
}

/** Steps, and members left alone. */
export interface Sorted {
  readonly steps: PlannedChange[]
  readonly held: HeldBack[]
}

/**
 * Plans one member.
 *
 * @param options - why nothing of its call would begin, and what it is a part of
 */
export function sort(
  { steps, held }: Sorted,
  reading: PresentReading,
  judged: Judged,
  data: PolicyData,
  { unbegun, title }: { readonly unbegun: string | undefined; readonly title?: string },
): void {
  const { ref, identity, own } = reading
  const say = (text: string): string => (title === undefined ? text : `${title}; ${text}`)
  const short = judged.short.get(refKey(ref))
  const { hold } = judged.policy
  if (short !== undefined) {
    held.push({ ref, reason: say(short.message) })
  } else if (unbegun !== undefined) {
    held.push({ ref, reason: say(`not begun: ${unbegun}`) })
  } else if (atLeast(own, hold)) {
    const reason = `in ${own} already, left as it is: ${describeDrain(reading, judged, data)}`
    held.push({ ref, reason: say(reason), asWished: true })
  } else {
    const known = identity === '' ? {} : { identity }
    const change = { kind: 'hold', ref, ...known, to: hold } as const
    steps.push({
      change,
      reason: say(describeDrain(reading, judged, data)),
      keepReady: data.keepReady,
    })
  }
}

/** The expected time, in words. */
export function expectation(least: number, most: number | null): string {
  const end = most === null ? 'no deadline' : `${formatDuration(most)} at most`
  return `idle is expected after ${formatDuration(least)} at least, ${end}`
}

/** Puts everything together as one plan. */
export function toPlan(
  kind: DrainPlan['kind'],
  { steps, held }: Sorted,
  {
    refused,
    expected,
    notes,
  }: Pick<DrainPlan, 'refused' | 'expected'> & { readonly notes: readonly string[] },
): DrainPlan {
  const bare = { changes: steps.map(({ change }) => change), steps, held, notes }
  return { ...bare, kind, refused, expected, text: formatPlan(bare) }
}
