import type { PresentReading } from '../../provider/contract.js'
import { formatDuration } from '../../provider/duration.js'
import type { DrainableError } from '../../provider/error.js'
import { maintEffect } from '../../core/member/record.js'
import type { PolicyData } from '../../core/tickets/ticket.js'
import type { Judged } from './judge.js'
import type { Verdicts } from './judge-all.js'

/** Describes the drain of one member in one line. */
export function describeDrain(
  reading: PresentReading,
  { policy, least }: Judged,
  { timeout }: PolicyData,
): string {
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

function atDeadline({ onTimeout, capabilities }: Judged['policy'], timeout: string): string {
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
  { judged, away, refused: together }: Verdicts,
  { ifUnsupported }: PolicyData,
): readonly string[] {
  const lacks = ifUnsupported === 'fail' ? [] : judged.flatMap((one) => one.lacks)
  const blind = judged.some(({ policy }) => policy.capabilities.counts === 'none')
  const refused = [...together, ...judged.flatMap((one) => one.refused)]
  return [
    ...refused.map(refusal),
    ...away.map(({ message }) => `not read now, the drain waits for it: ${message}`),
    ...slowOf(judged),
    ...lacks.map((lack) => `left out: ${lack}`),
    ...judged.flatMap((one) => one.hints),
    ...(blind ? ['idle can never be verified on a balancer that does not count work'] : []),
  ]
}

/** A look shorter than this says nothing about later ones, because it opens connections and logs in; in milliseconds. */
const SLOW_LOOK = 1_000

/** The drain needs two looks more: one must see the hold, one the end of the quiet time. */
function slowOf(judged: readonly Judged[]): readonly string[] {
  const took = Math.max(0, ...judged.map((one) => one.took))
  if (took < SLOW_LOOK) return []
  return [`this look took ${formatDuration(took)}: leave time for two more like it in the timeout`]
}

/** Formats a refusal in one line. */
export function refusal({ code, message }: DrainableError): string {
  return `refused with ${code}: ${message}`
}
