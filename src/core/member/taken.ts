import { atLeast, formatRef } from '../../provider/member-ref.js'
import type { AdminState, LoadScope, PresentReading } from '../../provider/contract.js'
import { DrainableError } from '../../provider/error.js'
import { printable } from '../../provider/quote.js'
import type { Draft } from './draft.js'
import { UNDO_LIMIT } from './goal.js'
import type { Opening } from './open.js'

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
