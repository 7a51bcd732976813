import { atLeast } from '../../../provider/admin-state.js'
import type { AdminState, Change } from '../../../provider/contract.js'
import { noted, ownChange } from './changes.js'
import { admitCut } from './cuts.js'
import type { Draft } from '../draft.js'
import { forgetSamples } from '../scopes.js'
import { incarnationsOf, isLetGo } from '../state.js'
import { destination } from './was.js'

/**
 * Records that a change of ours took effect. `unknown`: its effect is there, but it is not known whether our change
 * made it; an undo leaves it alone and says so.
 */
export function confirm(
  draft: Draft,
  change: Change,
  whose: 'applied' | 'unchanged' | 'unknown',
): void {
  const { hold } = draft.state
  const state = whose === 'unknown' ? 'intended' : whose
  draft.hold({
    ...ANSWERED,
    changes: noted(hold.changes, ownChange(change, state, draft.now)),
    confirmedAt: draft.now,
  })
  if (change.kind === 'hold') {
    if (draft.state.goal.kind === 'drain') held(draft, change.to)
    // Put back in another process, and answered when an undo had begun already: it is to be undone there.
    else if (whose === 'applied') draft.hold({ incarnations: incarnationsOf(draft.state) })
  }
  if (change.kind === 'restore') opened(draft, change.to)
  if (change.kind === 'remove') removed(draft)
}

/** The fields that an answer without a refusal resets. */
const ANSWERED = { losses: 0, loss: null, refusals: 0, refusal: null, atMinimum: false }

/**
 * Records a change that took effect only in processes that have ended: it is in the ledger, and the next look
 * decides.
 */
export function confirmForgotten(draft: Draft): void {
  draft.hold({ ...ANSWERED, confirmedAt: draft.now })
}

/**
 * Records that we opened the member to this state: from now on another state in the same process is another client's.
 */
function opened(draft: Draft, to: AdminState): void {
  const { goal } = draft.state
  if (goal.kind !== 'open') return
  const incarnations = incarnationsOf(draft.state)
  if (to === destination(draft.state, goal)) draft.set({ goal: { ...goal, reached: incarnations } })
  else draft.hold({ incarnations })
}

function held(draft: Draft, to: 'drain' | 'maint'): void {
  const { state } = draft
  const { verdict } = state.proof
  const { wish } = state.hold
  draft.hold({
    // A raise that was given up and took effect nevertheless is no longer wanted.
    confirmed: atLeast(to, wish) ? wish : to,
    incarnations: incarnationsOf(state),
    overruled: false,
  })
  draft.proof({
    effectiveSince: draft.now,
    inForce: false,
    scopes: forgetSamples(state.proof.scopes),
    verdict: verdict === null ? null : { ...verdict, sealedAt: draft.now },
  })
  // If another call has taken the member before the answer, this drain reports nothing more.
  if (state.phase === 'active' && !isLetGo(state)) draft.phase('draining')
}

function removed(draft: Draft): void {
  draft.phase('removed')
  draft.emit({ type: 'removed', ...draft.stamp })
  admitCut(draft)
  draft.finish(draft.state.ending.terminated > 0 ? 'terminated' : 'removed')
}
