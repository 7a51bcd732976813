import type { Change } from '../../../provider/contract.js'
import type { Draft } from '../draft.js'
import { maintEffect, type MachinePolicy } from '../policy.js'
import { loadOf, type DrainState } from '../state.js'

/**
 * The member's work in flight that a change cuts if it is carried out now; undefined if it cuts nothing. A look beside
 * the answer shows the member after the cut: what was there before must be remembered when the change is sent.
 */
export function cutBy(
  state: DrainState,
  policy: MachinePolicy,
  change: Change,
): number | undefined {
  if (change.kind === 'terminate') return loadOf(state)
  const reading = state.last?.reading
  const raises = change.kind === 'hold' && change.to === 'maint' && reading?.present === true
  return raises && maintEffect(policy, reading) !== 'gentle' ? loadOf(state) : undefined
}

/** Counts the work that a change has cut: the product's number, or at most what was in flight before it. */
export function countCut(draft: Draft, inFlight: number, count?: number, atMost = false): void {
  const { cutting } = draft.state.ending
  const known = count ?? inFlight
  draft.ending({ cutting: 0 })
  // What an earlier cut without an answer left was not there for this one.
  countTerminated(draft, Math.max(known, cutting), atMost || count === undefined || cutting > known)
}

/** Remembers what a change without an answer may have cut. */
export function loseCut(draft: Draft, inFlight: number | undefined): void {
  const { cutting } = draft.state.ending
  draft.ending({ cutting: Math.max(cutting, inFlight ?? 0) })
}

/**
 * Counts what is gone of the work that a change without an answer may have cut, before the run says how it ended:
 * whether it was cut or ended by itself is not known.
 */
export function admitCut(draft: Draft): void {
  const gone = draft.state.ending.cutting - loadOf(draft.state)
  draft.ending({ cutting: 0 })
  countTerminated(draft, Math.max(0, gone), true)
}

function countTerminated(draft: Draft, count: number, atMost: boolean): void {
  if (count === 0) return
  const { ending } = draft.state
  draft.ending({
    terminated: ending.terminated + count,
    terminatedAtMost: ending.terminatedAtMost || atMost,
  })
  draft.emit({ type: 'terminated', ...draft.stamp, count })
}
