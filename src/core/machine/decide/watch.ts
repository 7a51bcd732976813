import type { PresentReading, Reading } from '../../../provider/contract.js'
import type { Draft } from '../draft.js'
import { inWishedState, isClosed, marksOf, stillIdle, workSeen } from '../proof.js'
import type { DrainState } from '../state.js'
import { endGone, endUncounted, goneForCertain } from './gone.js'
import { loseIdle, prove, unverifiedBy } from './idle.js'

/** Goal `watch`: only looks; the phases follow the changes of other clients. */
export function decideWatch(draft: Draft): void {
  const { state } = draft
  const reading = state.last?.reading
  if (state.ending.ended !== null || reading === undefined || state.unread !== null) return
  const there = goneForCertain(draft)
  if (there === 'replaced') endGone(draft, there)
  else if (there === 'absent') removed(draft, reading)
  else if (there === 'here' && reading.present) present(draft, reading)
}

function present(draft: Draft, reading: PresentReading): void {
  const unverified = unverifiedBy(draft, reading)
  // Once the member is absent, no reading shows this any more.
  if (draft.state.phase !== 'idle') draft.proof({ unverified })
  if (!inWishedState(draft.state)) {
    draft.proof({ proof: null, verdict: null, sealed: false })
    draft.phase('active')
    return
  }
  const sealed = isClosed(draft.state, reading)
  follow(draft, { sealed, unverified })
}

/**
 * Handles a member that another client removed. If the product counts work after a removal, waits for its processes,
 * so that idle is reported before the end: the server behind it may be about to be stopped.
 */
function removed(draft: Draft, reading: Reading): void {
  endUncounted(draft)
  const { phase, proof } = draft.state
  // Counters can vanish with the member: only visible work takes back a reported idle.
  const stays =
    phase === 'idle' && !workSeen(draft.state, draft.policy, proof.verdict?.scopes ?? null)
  if (!stays && proof.scopes.size > 0) {
    follow(draft, { sealed: false, unverified: proof.unverified ?? unverifiedBy(draft, reading) })
    if (draft.state.phase !== 'idle') return
  }
  endGone(draft, 'absent')
}

/** Follows a member that gets no new clients: reports idle once it is proved, and takes it back once work is seen. */
function follow(draft: Draft, what: Pick<DrainState['proof'], 'sealed' | 'unverified'>): void {
  if (draft.state.phase === 'active') draft.phase('draining')
  if (!stillIdle(draft.state, draft.policy)) loseIdle(draft)
  if (draft.state.phase !== 'draining') return
  const proof = prove(draft)
  if (proof === null) return
  draft.proof({
    proof,
    ...what,
    verdict: { at: draft.now, proof, scopes: marksOf(draft.state), sealedAt: null },
  })
  draft.phase('idle')
  draft.emit({ type: 'idle', ...draft.stamp, proof })
}
