import { atLeast } from '../../provider/member-ref.js'
import type { PresentReading } from '../../provider/contract.js'
import { formatDuration } from '../../provider/duration.js'
import type { DrainableError } from '../../provider/error.js'
import { formatPlan, type HeldBack, type Plan, type PlannedChange } from '../../provider/desired.js'
import { maintEffect } from '../../core/member/record.js'
import type { PolicyData } from '../../core/tickets/ticket.js'
import type { Judgement, JudgedMember } from './judge.js'

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

/** What a plan says of one member: what is done to it, or why it is left alone. */
export type Planned = PlannedChange | HeldBack

/**
 * Plans one member.
 *
 * @param unbegun - why nothing of its call would begin
 * @param title - what it is a part of
 */
export function planMember(
  member: JudgedMember,
  data: PolicyData,
  unbegun: string | undefined,
  title?: string,
): Planned {
  const { ref, identity, own } = member.reading
  const { hold } = member.policy
  const say = (text: string): string => (title === undefined ? text : `${title}; ${text}`)
  if (member.short !== undefined) return { ref, reason: say(member.short.message) }
  if (unbegun !== undefined) return { ref, reason: say(`not begun: ${unbegun}`) }
  const words = describeDrain(member, data)
  if (atLeast(own, hold))
    return { ref, reason: say(`in ${own} already, left as it is: ${words}`), asWished: true }
  const known = identity === '' ? {} : { identity }
  const change = { kind: 'hold', ref, ...known, to: hold } as const
  return { change, reason: say(words), keepReady: data.keepReady }
}

/** The expected time, in words. */
export function expectation(least: number, most: number | null): string {
  const end = most === null ? 'no deadline' : `${formatDuration(most)} at most`
  return `idle is expected after ${formatDuration(least)} at least, ${end}`
}

/** Puts everything together as one plan. */
export function toPlan(
  kind: DrainPlan['kind'],
  planned: readonly Planned[],
  rest: Pick<DrainPlan, 'refused' | 'expected'> & { readonly notes: readonly string[] },
): DrainPlan {
  const steps = planned.filter((one) => 'change' in one)
  const held = planned.filter((one): one is HeldBack => !('change' in one))
  const bare = { changes: steps.map(({ change }) => change), steps, held, notes: rest.notes }
  return { ...bare, ...rest, kind, text: formatPlan(bare) }
}

/** Describes the drain of one member in one line. */
function describeDrain({ reading, policy, least }: JudgedMember, { timeout }: PolicyData): string {
  const { hold, seal, until, escalateAfter } = policy
  const closes =
    hold !== 'maint' &&
    (seal === 'always' || (seal === 'gentle' && maintEffect(policy, reading) === 'gentle'))
  return [
    loadOf(reading, policy.capabilities.counts),
    `idle after ${formatDuration(least)} without work`,
    ...(escalateAfter === null ? [] : [`in maint after ${formatDuration(escalateAfter)}`]),
    ...(closes ? ['then in maint'] : []),
    ...(until === 'removed' ? ['then taken out of its pool'] : []),
    timeout === null ? 'waits without a deadline' : atDeadline(policy, formatDuration(timeout)),
  ].join('; ')
}

const AT_DEADLINE = {
  fail: 'fails and stays drained',
  terminate: 'what is left is cut',
  proceed: 'goes on whatever is left',
} as const

/** What becomes of the work that is left when a member is taken out all the same. */
const AT_REMOVAL = {
  keeps: 'goes on to its end',
  cuts: 'is cut',
  refuses: 'is cut',
  unknown: 'can be cut',
} as const

function atDeadline({ onTimeout, capabilities }: JudgedMember['policy'], timeout: string): string {
  if (onTimeout !== 'remove') return `${AT_DEADLINE[onTimeout]} after ${timeout}`
  const becomes = AT_REMOVAL[capabilities.removal ?? 'unknown']
  return `taken out all the same after ${timeout}: what is left ${becomes}, and idle is not verified`
}

function loadOf({ scopes }: PresentReading, counts: 'requests' | 'connections' | 'none'): string {
  const read = scopes.filter(({ state }) => state === 'read')
  const unread = scopes.filter(({ state }) => state === 'unread').length
  const more =
    unread === 0 ? '' : `, ${unread} ${unread === 1 ? 'process' : 'processes'} can't be read now`
  if (counts === 'none') return `this balancer does not count work${more}`
  const active = read.reduce((sum, scope) => sum + scope.active, 0)
  const queued = read.reduce((sum, scope) => sum + scope.queued, 0)
  const what = active === 1 ? counts.slice(0, -1) : counts
  const waiting = queued === 0 ? '' : ` and ${queued} queued`
  return `${active} ${what} in flight${waiting}${more}`
}

/** Notes that apply to every member. */
export function notesOf(
  { members, refused, away, lacks, hints, took }: Judgement,
  { ifUnsupported }: PolicyData,
): readonly string[] {
  const isUncounted = members.some(({ policy }) => policy.capabilities.counts === 'none')
  return [
    ...refused.map(refusal),
    ...away.map(({ message }) => `not read now, the drain waits for it: ${message}`),
    // The drain needs two looks more: one must see the hold, one the end of the quiet time.
    ...(took < SLOW_LOOK
      ? []
      : [`this look took ${formatDuration(took)}: leave time for two more like it in the timeout`]),
    ...(ifUnsupported === 'fail' ? [] : lacks.map((lack) => `left out: ${lack}`)),
    ...hints,
    ...(isUncounted ? ['idle can never be verified on a balancer that does not count work'] : []),
  ]
}

/** A look shorter than this says nothing about later ones, because it opens connections and logs in; in milliseconds. */
const SLOW_LOOK = 1_000

/** Formats a refusal in one line. */
export function refusal({ code, message }: DrainableError): string {
  return `refused with ${code}: ${message}`
}
