import type { PresentReading } from '../../../provider/contract.js'
import type { Draft } from '../draft.js'
import { maintEffect } from '../policy.js'
import { isClosed, isLastLook, marksOf, missesArrivals, verdictStands } from '../proof.js'
import { isRefused } from '../ledger/result.js'
import type { DrainState } from '../state.js'
import { unverifiedBy } from './idle.js'
import { send } from './send.js'

/** After this many refusals, idle is reported without a seal. */
const MOST_SEALS = 3

/**
 * Called when the rule is met: keeps persistent clients out if the policy wants a seal, and looks once more.
 *
 * @param fresh - whether the verdict is from this look: a verdict from an earlier look, or from a ticket, needs one
 *   more look, whatever its time
 * @returns whether the member is idle now
 */
export function closeDoor(draft: Draft, reading: PresentReading, fresh: boolean): boolean {
  const { state } = draft
  const { verdict, sealFailures } = state.proof
  if (verdict === null) return false
  const closed = isClosed(state, reading)
  const seal = { kind: 'hold' as const, to: 'maint' as const, ref: state.ref, ...draft.identity }
  const asked = closed || state.hold.wish === 'maint'
  const wanted = !asked && sealFailures < MOST_SEALS && sealWished(draft, reading)
  if (wanted && !isRefused(state, seal)) {
    if (send(draft, seal)) draft.hold({ wish: 'maint' })
    // During the wait after a refusal, the verdict is dropped and found anew.
    else draft.proof({ verdict: null })
    return false
  }
  if (!fresh) {
    const stands = verdictStands(state, draft.policy)
    // Work came in before the seal: the drain goes on in maint, by the whole rule.
    if (stands === 'fell') draft.proof({ verdict: null })
    if (stands !== 'stands') return false
    // Without arrivals only zeros from behind the seal show that nobody came before it.
    const again = verdict.sealedAt !== null && missesArrivals(state)
    if (again && !isLastLook(state, draft.policy)) {
      draft.proof({ verdict: null })
      return false
    }
  }
  sayIdle(draft, reading, closed)
  return true
}

/** Whether a sealed member, whoever sealed it, is open to persistent clients again before the outcome. */
export function isUnsealed(state: DrainState, reading: PresentReading): boolean {
  const { proof, ending } = state
  return proof.sealed && !ending.settled && !isClosed(state, reading)
}

function sealWished({ policy }: Draft, reading: PresentReading): boolean {
  const effect = maintEffect(policy, reading)
  return (
    effect !== 'none' &&
    (policy.seal === 'always' || (policy.seal === 'gentle' && effect === 'gentle'))
  )
}

function sayIdle(draft: Draft, reading: PresentReading, sealed: boolean): void {
  const { verdict } = draft.state.proof
  if (verdict === null) return
  const { proof } = verdict
  draft.proof({ proof, sealed, unverified: unverifiedBy(draft, reading) })
  if (draft.state.ending.settled) draft.ending({ marks: marksOf(draft.state) })
  draft.phase('idle')
  draft.emit({ type: 'idle', ...draft.stamp, proof })
}
