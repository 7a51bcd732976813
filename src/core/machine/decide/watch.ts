import type { Draft } from '../draft.js'
import { inWishedState, marksOf, stillIdle } from '../proof.js'
import { isClosed } from './door.js'
import { endGone, goneForCertain } from './gone.js'
import { loseIdle, prove } from './idle.js'

/** Goal `watch`: looks only; the phases follow whatever somebody else does. */
export function decideWatch(draft: Draft): void {
  const { state } = draft
  const reading = state.last?.reading
  if (state.ending.ended !== null || reading === undefined || state.unread !== null) return
  const there = goneForCertain(draft)
  if (there === 'absent' || there === 'replaced') {
    endGone(draft, there)
    return
  }
  if (there === 'unsure' || !reading.present) return
  if (!inWishedState(state)) {
    draft.proof({ proof: null, verdict: null, sealed: false })
    draft.phase('active')
    return
  }
  if (state.phase === 'active') draft.phase('draining')
  if (!stillIdle(state)) loseIdle(draft)
  if (draft.state.phase !== 'draining') return
  const proof = prove(draft)
  if (proof === null) return
  draft.proof({
    proof,
    sealed: isClosed(draft.state, reading),
    verdict: { at: draft.now, proof, scopes: marksOf(draft.state), sealedAt: null },
    unverified: reading.unverified ?? null,
  })
  draft.phase('idle')
  draft.emit({ type: 'idle', ...draft.stamp, proof })
}
