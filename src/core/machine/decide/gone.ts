import { DrainableError } from '../../../provider/error.js'
import { formatRef, isSameIdentity } from '../../../provider/member-ref.js'
import { confirm } from '../ledger/confirm.js'
import type { Draft } from '../draft.js'
import { ABSENCE_GAP, endAll } from '../scopes.js'
import { isReportedIdle } from './idle.js'

/**
 * Whether the member is certainly absent, or replaced by one with another identity. One damaged reply must not make a
 * busy member count as gone, so a second look must agree, as far apart as the product needs.
 */
export function goneForCertain(draft: Draft): 'here' | 'unsure' | 'absent' | 'replaced' {
  const { last, found, vanished } = draft.state
  if (last === null) return 'here'
  const { reading, askedAt } = last
  const identity = reading.present ? reading.identity : null
  if (reading.present && isSameIdentity(found?.identity, reading.identity)) return 'here'
  if (vanished === null || vanished.identity !== identity) {
    draft.set({ vanished: { identity, since: askedAt } })
    return 'unsure'
  }
  if (askedAt < vanished.since + gapOf(draft)) return 'unsure'
  return reading.present ? 'replaced' : 'absent'
}

function gapOf(draft: Draft): number {
  return Math.max(ABSENCE_GAP, draft.policy.capabilities.freshness)
}

/** Ends the scopes of a gone member without listed processes, if the product counts nothing after a removal. */
export function endUncounted(draft: Draft): void {
  const { last, proof } = draft.state
  if (draft.policy.capabilities.countsAfterRemove) return
  if (last === null || last.reading.scopes.length > 0) return
  const tracked = endAll(proof)
  const at = draft.stamp.at
  draft.proof({
    scopes: tracked.scopes,
    ended: tracked.ended,
    lost: [...proof.lost, ...tracked.lost.map((lost) => ({ ...lost, at }))],
  })
}

/** Ends the run of a gone member: removed by our own change whose answer was lost, or by another client. */
export function endGone(draft: Draft, what: 'absent' | 'replaced'): void {
  const { state } = draft
  const ours = state.hold.late.find(({ change }) => change.kind === 'remove')
  if (what === 'absent' && ours !== undefined) {
    confirm(draft, ours.change, 'applied')
    return
  }
  const name = formatRef(state.ref)
  const message =
    what === 'absent'
      ? `${name} is not in the pool any more: another client removed it, or a reload did not keep it`
      : `${name} is another member now (another address or id), it was left alone${heldAs(state)}`
  draft.phase('removed')
  draft.emit({ type: 'removed', ...draft.stamp })
  // An idle that is not yet the outcome of the whole run is dropped; an outcome at the deadline stands.
  if (!state.ending.settled && isReportedIdle(state)) draft.ending({ ended: null })
  draft.finish('gone', new DrainableError('MEMBER_GONE', message, { ref: state.ref }))
}

/** A product can keep the state over the change (HAProxy 2.6 to 3.4: `set server addr`): then our hold is on the other member. */
function heldAs({ last }: Draft['state']): string {
  const own = last?.reading.present === true ? last.reading.own : 'ready'
  return own === 'ready' ? '' : `, in ${own}: open it with ready() if it is to serve`
}
