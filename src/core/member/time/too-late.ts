import type { MemberRef } from '../../../provider/contract.js'
import { formatDuration } from '../../../provider/duration.js'
import { DrainableError } from '../../../provider/error.js'
import { formatRef } from '../../../provider/member-ref.js'
import type { Draft } from '../draft.js'
import type { Opening } from '../open.js'
import { ownOf } from '../sight.js'
import { isDown } from '../wanted.js'

/** The error for a change that may still be carried out when no caller waits any longer. */
export function lateError(draft: Draft, claim: Opening): DrainableError {
  const { ref, ledger } = draft
  const bound = draft.now + claim.policy.capabilities.lateBound
  const untils = ledger.late.map((late) => late.until ?? bound)
  const until = Math.max(...untils, ...(ledger.pending === null ? [] : [bound]))
  const what =
    ledger.pending === null
      ? 'was opened, but a change of ours whose answer was lost'
      : 'was not seen opened: a change of ours has no answer yet, and'
  return new DrainableError(
    'CONFLICT',
    `${formatRef(ref)} ${what} may still be carried out until ${draft.iso(until)}: restore the ticket after that`,
    { ref },
  )
}

/** Why an opening has not come to its end in its time. */
export function tooLate(draft: Draft, claim: Opening): DrainableError {
  const { ref } = draft
  const sight = draft.sight(claim)
  const { last, vanished } = sight.facts
  const own = ownOf(sight)
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
    const words = `the balancer contradicts itself about the state of this member for ${took}, so nothing was changed`
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
