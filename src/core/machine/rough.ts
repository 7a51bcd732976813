import type { Draft } from './draft.js'
import { maintEffect, type MachinePolicy } from './policy.js'
import { stillIdle } from './proof.js'
import type { DrainState } from './state.js'

/**
 * Whether the pending hold, which was not sent yet, must not be sent any more: an undo has begun meanwhile, or it is
 * rough.
 */
export function isOutdated(state: DrainState, policy: MachinePolicy): boolean {
  const isHold = state.hold.pending?.change.kind === 'hold'
  return (isHold && state.goal.kind === 'open') || isRough(state, policy)
}

/**
 * Whether the pending hold cuts what the caller did not allow: it raises to maint, and a reading since the decision says that
 * maint cuts. The hold can have waited long, for its ticket or for another call. The caller allows a seal only over a
 * verdict that still stands, and any other raise only if work may be cut.
 */
function isRough(state: DrainState, policy: MachinePolicy): boolean {
  const { pending } = state.hold
  const reading = state.last?.reading
  if (pending?.change.kind !== 'hold' || pending.change.to !== 'maint') return false
  if (reading?.present !== true || maintEffect(policy, reading) === 'gentle') return false
  const word = isSealing(state)
    ? policy.seal === 'always' && stillIdle(state, policy)
    : policy.onTimeout === 'terminate'
  return !word
}

/** Whether the pending hold is a seal over a verdict; for an idle member, the seal is put back. */
function isSealing({ proof, phase }: DrainState): boolean {
  return proof.verdict !== null && proof.verdict.sealedAt === null && phase !== 'idle'
}

/** Recalls the pending hold: the next step is decided anew, from drain. */
export function recall(draft: Draft): void {
  if (!isOutdated(draft.state, draft.policy)) return
  if (isSealing(draft.state)) draft.proof({ verdict: null })
  draft.hold({ pending: null })
  if (draft.state.goal.kind === 'drain') lowerWish(draft) // an undo wants no hold
}

/** Lowers the wanted and the confirmed hold to drain. */
export function lowerWish(draft: Draft): void {
  const { confirmed } = draft.state.hold
  draft.hold({ wish: 'drain', confirmed: confirmed === 'none' ? 'none' : 'drain' })
}
