import { DrainableError } from '../../provider/error.js'
import { formatRef, isSameIdentity } from '../../provider/member-ref.js'
import type { Draft, Open } from './draft.js'
import { dropIdle } from './idle.js'
import { confirm } from './ledger/answers.js'
import type { EndingState } from './record.js'
import { absenceGap, endAll } from './proof/scopes.js'

/**
 * Whether the member is certainly absent, or replaced by one with another identity. One damaged reply must not make a
 * busy member count as gone, so a second look must agree, {@link absenceGap} later.
 */
export function goneForCertain(
  draft: Draft,
  claim: Open,
): 'here' | 'unsure' | 'absent' | 'replaced' {
  const facts = draft.view(claim.view)
  const { last, vanished } = facts
  if (last === null) return 'here'
  const { reading, askedAt } = last
  const identity = reading.present ? reading.identity : null
  if (reading.present && isSameIdentity(draft.ledger.found?.identity, reading.identity))
    return 'here'
  if (vanished === null || vanished.identity !== identity) {
    facts.vanished = { identity, since: askedAt }
    return 'unsure'
  }
  if (askedAt < vanished.since + absenceGap(claim)) return 'unsure'
  return reading.present ? 'replaced' : 'absent'
}

/** Ends the processes of a gone member that are not listed, if the product counts nothing after a removal. */
export function endUncounted(draft: Draft, claim: Open): void {
  const { last } = draft.view(claim.view)
  if (claim.policy.capabilities.countsAfterRemove) return
  if (last === null || last.reading.scopes.length > 0) return
  const { scopes, ended, lost } = endAll(claim.proof)
  const { at } = draft.stamp
  const known = claim.proof.lost
  draft.proof(claim, { scopes, ended, lost: [...known, ...lost.map((one) => ({ ...one, at }))] })
}

/** Ends a claim on a gone member: removed by a change of ours whose answer was lost, or by another client. */
export function endGone(draft: Draft, claim: Open, what: 'absent' | 'replaced'): void {
  const { ledger, ref } = draft
  const ours = ledger.late.find(({ change }) => change.kind === 'remove')
  if (what === 'absent' && ours !== undefined) {
    ledger.late = ledger.late.filter((one) => one !== ours)
    confirm(draft, ours.change, 'applied', 'unknown')
    return
  }
  const message =
    what === 'absent'
      ? `${formatRef(ref)} is not in the pool any more: another client removed it, or a reload did not keep it`
      : saidReplaced(draft, claim)
  dropIdle(draft, claim)
  draft.phase(claim, 'removed')
  draft.emit(claim, { type: 'removed', ...draft.stamp })
  draft.finish(claim, 'gone', new DrainableError('MEMBER_GONE', message, { ref }))
}

/**
 * Why the undo of a claim whose member is gone opens nothing.
 *
 * @param ended - how it had ended by then: where it ended as gone, nobody has looked since
 */
export function nothingToOpen(
  draft: Draft,
  claim: Open,
  ended: EndingState['ended'],
): DrainableError {
  if (ended?.outcome === 'gone' && ended.error !== null) return ended.error
  const { ref, ledger } = draft
  const reading = draft.view(claim.view).last?.reading
  const isAnother =
    reading?.present === true && !isSameIdentity(ledger.found?.identity, reading.identity)
  const words = `${formatRef(ref)} was taken out of its pool, there is nothing to open: a server that has its name by now is a new one`
  return new DrainableError('MEMBER_GONE', isAnother ? saidReplaced(draft, claim) : words, { ref })
}

function saidReplaced(draft: Draft, claim: Open): string {
  return `${formatRef(draft.ref)} is another member now (another address or id), it was left alone${heldAs(draft, claim)}`
}

/** A product can keep the state over the change (HAProxy 2.6 to 3.4: `set server addr`): then our hold is on the other member. */
function heldAs(draft: Draft, claim: Open): string {
  const reading = draft.view(claim.view).last?.reading
  const own = reading?.present === true ? reading.own : 'ready'
  return own === 'ready' ? '' : `, in ${own}: open it with ready() if it is to serve`
}
