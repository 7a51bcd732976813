import { atLeast, formatRef, isSameIdentity } from '../../provider/member-ref.js'
import type { AdminState, LoadScope, MemberRef, PresentReading } from '../../provider/contract.js'
import { DrainableError } from '../../provider/error.js'
import { printable } from '../../provider/quote.js'
import type { Draft } from './draft.js'
import { isDown, UNDO_LIMIT } from './wanted.js'
import type { Opening } from './open.js'
import { formatDuration } from '../../provider/duration.js'
import { ownOf, type ClaimedMember } from './claimed.js'
import type { Why, WhyCode } from '../../provider/report.js'
import { destination } from './whose.js'

/** The hint of what comes by itself. */
export const ONLY_WAIT = 'nothing to do but wait'

/** How many processes an error names. */
const MOST_NAMES = 3

/**
 * The processes that may still be given new clients and don't show yet that the member was opened to this state: the
 * set that opens it was not taken, or they can't be read. An old process takes no more changes, and no new clients.
 */
export function untaken(
  { scopes, inherited = 'ready' }: PresentReading,
  to: AdminState,
): readonly LoadScope[] {
  const most = atLeast(to, inherited) ? to : inherited
  return scopes.filter(
    (scope) => scope.state !== 'ended' && scope.old !== true && !isTaken(scope, most),
  )
}

function isTaken({ state, open, inForce, admin }: LoadScope, most: AdminState): boolean {
  if (open === false) return true
  if (inForce === false) return false
  // Of a process whose numbers alone can't be read, the provider says what it has taken.
  if (state !== 'read' && inForce !== true) return false
  return admin === undefined || (admin !== 'unknown' && atLeast(most, admin))
}

/** Waits until the rest of the processes have taken it, for 30 s at most. */
export function awaitTaken(draft: Draft, claim: Opening, rest: readonly LoadScope[]): void {
  const { now } = draft
  const { until, lateUntil } = claim.goal
  const takenBy =
    claim.goal.takenBy ?? Math.min(now + UNDO_LIMIT, until ?? Infinity, lateUntil ?? Infinity)
  if (now >= takenBy) draft.finish(claim, 'unreachable', untakenError(draft, rest))
  else claim.goal = { ...claim.goal, takenBy }
}

function untakenError({ ref }: Draft, rest: readonly LoadScope[]): DrainableError {
  const named = rest.slice(0, MOST_NAMES).map(nameUntaken)
  const more = rest.length > MOST_NAMES ? `; and ${rest.length - MOST_NAMES} more` : ''
  return new DrainableError(
    'UNREACHABLE',
    `${formatRef(ref)} is open, but not every process has taken that: ${named.join('; ')}${more}; they may keep it drained until they do, so keep the provider open and try again`,
    { ref },
  )
}

/** A process that has not taken it, and why, as far as it is known. */
export function nameUntaken({ scope, state, admin, inForce, note }: LoadScope): string {
  const stays = inForce !== false && admin !== undefined
  const what = stays ? `is at ${admin}` : state === 'read' ? 'has not taken it' : "can't be read"
  return printable(`${scope} ${what}${note === undefined ? '' : ` (${note})`}`)
}

/** The error for a change that may still be carried out when no caller waits any longer. */
export function lateError(draft: Draft, claim: Opening): DrainableError {
  const { ref, ledger } = draft
  const bound = draft.now + claim.policy.capabilities.lateBound
  const untils = ledger.late.map((late) => late.until ?? bound)
  const until = Math.max(...untils, ...(ledger.pending === null ? [] : [bound]))
  const isRemoval = ledger.late.some(({ change }) => change.kind === 'remove')
  const what =
    ledger.pending === null
      ? `was ${isRemoval ? 'not opened: a removal' : 'opened, but a change'} of ours whose answer was lost`
      : 'was not seen opened: a change of ours has no answer yet, and'
  return new DrainableError(
    'CONFLICT',
    `${formatRef(ref)} ${what} may still be carried out until ${draft.iso(until)}: restore the ticket after that`,
    { ref },
  )
}

/** Why the balancer could not be read for the larger part of the time of an opening; null if it could. */
export function mostlyUnread({ now }: Draft, { goal }: Opening): DrainableError | null {
  const { unread, since } = goal
  if (unread === null) return null
  const all = unread.before + now - (unread.from ?? now)
  return all * 2 > now - since ? unread.error : null
}

/** Why an opening has not come to its end in its time. */
export function tooLate(draft: Draft, claim: Opening): DrainableError {
  const { ref } = draft
  const claimed = draft.claimed(claim)
  const { last, vanished } = claimed.facts
  const own = ownOf(claimed)
  const elapsed = draft.now - claim.goal.since
  const took = formatDuration(elapsed)
  const name = formatRef(ref)
  if (last === null)
    return new DrainableError(
      'CALL_TIMEOUT',
      `${name}: no answer from the balancer within ${took}`,
      { ref },
    )
  if (vanished !== null) {
    const seen = vanished.identity === null ? 'absent' : 'another member'
    const words = `it was ${seen} at the last look, not long enough to be sure that it is gone; it was left alone`
    return new DrainableError('CONFLICT', `${name}: ${words}`, { ref })
  }
  if (own === 'unknown') {
    const said = saidBy(last.reading.present ? last.reading.hints : undefined)
    const words = `the balancer contradicts itself about the state of this member${said} for ${took}, so nothing was changed`
    return new DrainableError('CONFLICT', `${name}: ${words}`, { ref })
  }
  if (claim.goal.check === 'running') return checkUnanswered(ref, elapsed)
  const health = last.reading.present ? last.reading.health : 'unknown'
  const isAsked = draft.claims.some((other) => other !== claim && isDown(other))
  if (isAsked) {
    const words = `is '${own}', and another drain of this process may still take it: it was not opened for ${took}`
    return new DrainableError('CONFLICT', `${name} ${words}`, { ref })
  }
  if (health === 'up' || health === 'unchecked') {
    const words = `was '${own}' at the last look that counts (health: ${health}), and ${took} was too short to see it open: set a longer timeout`
    return new DrainableError('CALL_TIMEOUT', `${name} ${words}`, { ref })
  }
  return new DrainableError(
    'HEALTH_TIMEOUT',
    `${name} is '${own}' and no check passed within ${took} (health: ${health}), see what its health check says`,
    { ref },
  )
}

/** The error for a member whose health check by the caller gave no answer in that time, in milliseconds. */
export function checkUnanswered(ref: MemberRef, limit: number): DrainableError {
  return new DrainableError(
    'HEALTH_TIMEOUT',
    `${formatRef(ref)}: the caller's health check gave no answer within ${formatDuration(limit)}; it stays as it is, set a longer timeout to wait longer`,
    { ref },
  )
}

/** Takes one reason. */
export type Say = (code: WhyCode, text: string, more?: Partial<Why>) => void

/** Explains why a member is not open again. */
export function explainOpen(claimed: ClaimedMember, now: number, say: Say): void {
  const { ref, claim, facts, ledger } = claimed
  const reading = facts.last?.reading
  const name = formatRef(ref)
  if (explainVanished(claimed, say)) return
  if (reading?.present !== true || facts.unread !== null) return
  const { goal } = claim
  const waited = formatDuration(now - (goal.kind === 'open' ? goal.since : claim.startedAt))
  const isOpen = goal.kind === 'open' && reading.own === destination(ledger, goal)
  const rest = isOpen ? untaken(reading, reading.own) : []
  for (const scope of rest) {
    say('not-in-force', `${nameUntaken(scope)}: it may still keep the member drained`, {
      scope: scope.scope,
      hint: 'if this lasts, check that this process can be reached and takes changes',
    })
  }
  if (rest.length > 0) return
  if (reading.own === 'unknown') explainUnknown(name, reading.hints, say)
  else if (reading.own !== 'ready' || ledger.late.length === 0) {
    say('settling', `${name} is '${reading.own}', health ${reading.health}, for ${waited}`, {
      hint: 'after maint it gets work only once the first health check has passed',
    })
  }
}

/** Explains a member that the newest look shows as absent or replaced. @returns whether it is */
export function explainVanished(
  { ref, facts: { last }, ledger }: ClaimedMember,
  say: Say,
): boolean {
  if (last === null) return false
  const { reading } = last
  if (reading.present && isSameIdentity(reading.identity, ledger.found?.identity)) return false
  const seen = reading.present ? 'is another member' : 'is absent'
  say(
    'unreadable',
    `${formatRef(ref)} ${seen} in the newest look; a later look decides whether it is gone`,
    {
      hint: ONLY_WAIT,
    },
  )
  return true
}

/** Explains a state that the balancer contradicts itself about. */
export function explainUnknown(name: string, hints: readonly string[] | undefined, say: Say): void {
  say(
    'unreadable',
    `${name}: the balancer contradicts itself about the state of this member${saidBy(hints)}, so it can't be called idle`,
    {
      hint: 'if this lasts, compare what the processes or units of the balancer report',
    },
  )
}

/** What the provider says first of it: that is what it found. */
function saidBy(hints: readonly string[] | undefined): string {
  return hints?.[0] === undefined ? '' : ` (${hints[0]})`
}
