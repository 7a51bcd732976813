import type { Draft } from './draft.js'
import { maintEffect, type MachinePolicy } from './policy.js'
import { stillIdle } from './proof.js'
import type { DrainState } from './state.js'

/**
 * Whether the hold under way must not be sent any more: it raises to maint, and what was read since it
 * was decided on says that maint cuts. It may have waited long, for its ticket or for another call. A
 * seal has the caller's word only over a verdict that stands, any other only where work may be cut.
 */
export function isRough(state: DrainState, policy: MachinePolicy): boolean {
  const { pending } = state.hold
  const reading = state.last?.reading
  if (pending?.change.kind !== 'hold' || pending.change.to !== 'maint') return false
  if (reading?.present !== true || maintEffect(policy, reading) === 'gentle') return false
  const word = isSealing(state)
    ? policy.seal === 'always' && stillIdle(state, policy)
    : policy.onTimeout === 'terminate'
  return !word
}

/** Whether the hold under way closes the door over a verdict; one of an idle member is put back. */
function isSealing({ proof, phase }: DrainState): boolean {
  return proof.verdict !== null && proof.verdict.sealedAt === null && phase !== 'idle'
}

/** The hold under way is not sent: what is to be done instead is decided anew, from drain. */
export function recall(draft: Draft): void {
  if (!isRough(draft.state, draft.policy)) return
  if (isSealing(draft.state)) draft.proof({ verdict: null })
  draft.hold({ pending: null })
  if (draft.state.goal.kind === 'drain') lowerWish(draft) // an undo wishes nothing
}

/** Drain is wished from now on, and no more than that counts as confirmed. */
export function lowerWish(draft: Draft): void {
  const { confirmed } = draft.state.hold
  draft.hold({ wish: 'drain', confirmed: confirmed === 'none' ? 'none' : 'drain' })
}
