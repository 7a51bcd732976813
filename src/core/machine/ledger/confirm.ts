import { atLeast } from '../../../provider/admin-state.js'
import type { AdminState, Change } from '../../../provider/contract.js'
import { noted, ownChange } from './changes.js'
import type { Draft } from '../draft.js'
import { maintEffect } from '../policy.js'
import { forgetSamples } from '../scopes.js'
import { incarnationsOf, isLetGo, loadOf } from '../state.js'
import { destination } from './was.js'

/**
 * A change of ours took effect. `unknown`: its effect is there, and it is not known whether that is
 * ours; an undo leaves it alone and says so.
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

/** What an answer that is no refusal ends. */
const ANSWERED = { losses: 0, loss: null, refusals: 0, refusal: null, atMinimum: false }

/** It took effect, and that is in the ledger, but in no process that is there: the next look decides. */
export function confirmForgotten(draft: Draft): void {
  draft.hold({ ...ANSWERED, confirmedAt: draft.now })
}

/** Opened by us, as far as that: another state in the same process is another client's from now on. */
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
    // A raise that was given up, and came all the same, is not wished any more.
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
  // The answer may come when another call has taken the member: this drain says nothing more of it.
  if (state.phase === 'active' && !isLetGo(state)) draft.phase('draining')
}

function removed(draft: Draft): void {
  draft.phase('removed')
  draft.emit({ type: 'removed', ...draft.stamp })
  draft.finish(draft.state.ending.terminated > 0 ? 'terminated' : 'removed')
}

/** Counts what was cut, and says so. */
export function countTerminated(draft: Draft, count: number, atMost: boolean): void {
  if (count === 0) return
  const { ending } = draft.state
  draft.ending({
    terminated: ending.terminated + count,
    terminatedAtMost: ending.terminatedAtMost || atMost,
  })
  draft.emit({ type: 'terminated', ...draft.stamp, count })
}

/** A raise to a maint that is not gentle cut what was there. */
export function countCut(draft: Draft, change: Change, load = loadOf(draft.state)): void {
  if (change.kind !== 'hold' || change.to !== 'maint') return
  const reading = draft.state.last?.reading
  if (reading?.present === true && maintEffect(draft.policy, reading) !== 'gentle')
    countTerminated(draft, load, true)
}
