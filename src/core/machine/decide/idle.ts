import type { Reading } from '../../../provider/contract.js'
import { DrainableError } from '../../../provider/error.js'
import { formatRef } from '../../../provider/member-ref.js'
import type { Draft } from '../draft.js'
import {
  clearedCounters,
  isClosed,
  marksOf,
  missesArrivals,
  proveIdle,
  stillIdle,
  workSeen,
} from '../proof.js'
import type { Proof } from '../../../provider/report.js'
import { readsMember, type DrainState } from '../state.js'

/** Proves that the member is idle now; null while a rule is not met. */
export function prove(draft: Draft): Proof | null {
  return proveIdle(draft.state, draft.policy, draft.now, draft.wall - draft.now)
}

/** Why an idle by this reading is not verified; null if it is. The reading of an absent member does not say. */
export function unverifiedBy({ policy, state }: Draft, reading: Reading): string | null {
  if (reading.present && reading.unverified !== undefined) return reading.unverified
  if (policy.capabilities.counts === 'none')
    return 'this product does not count work: idle is what the product reports'
  if (!reading.present || !missesArrivals(state)) return null
  // A verdict from before the seal rests on zeros between which a client can have come and gone.
  const sinceClosed = isClosed(state, reading) && state.proof.verdict?.sealedAt == null
  return sinceClosed
    ? null
    : 'this product does not count arrivals, and the member was not closed to all clients: one can come between two looks'
}

/** Drops an idle that a reading contradicts: the drain goes on. */
export function loseIdle(draft: Draft): void {
  draft.proof({ verdict: null })
  if (draft.state.phase !== 'idle') return
  draft.proof({ proof: null, sealed: false })
  if (restsOnIdle(draft.state) && !draft.state.ending.settled) draft.ending({ ended: null })
  draft.emit({ type: 'idle-lost', ...draft.stamp })
  draft.phase('draining')
}

/** Whether the outcome rests on idle. An outcome at the deadline does not, even if idle is reported after it. */
export function restsOnIdle({ ending }: DrainState): boolean {
  const outcome = ending.ended?.outcome
  return outcome === 'idle' || outcome === 'terminated'
}

/** Whether its outcome says that it is idle now. */
export function isReportedIdle(state: DrainState): boolean {
  return state.phase === 'idle' && restsOnIdle(state)
}

/**
 * Whether a reported idle still stands. While other members go on, every process must be as it was then; once the run
 * has its outcome and only holds, only visible work contradicts it.
 */
export function staysIdle(draft: Draft): boolean {
  const { state } = draft
  const { marks } = state.ending
  if (marks === null) return stillIdle(state, draft.policy)
  if (workSeen(state, draft.policy)) return false
  const now = marksOf(state)
  const read = [...now].filter(([name]) => state.proof.scopes.get(name)?.last.state === 'read')
  draft.ending({ marks: new Map([...marks, ...read]) })
  return true
}

/** Reports once that work came to a member held idle. */
export function sayLostWork(draft: Draft): void {
  const { state } = draft
  if (!workSeen(state, draft.policy)) return
  const cleared = clearedCounters(state)
  const words =
    cleared === undefined
      ? 'got work again after it was reported idle: look for a reload that forgot the drain, or another client that opened it'
      : `may have got work after it was reported idle: the counters of ${cleared} began anew, so another client has cleared them, and what came before that can't be told`
  draft.lose(
    new DrainableError('IDLE_LOST', `${formatRef(state.ref)} ${words}`, { ref: state.ref }),
  )
}

/** Takes an idle back, and tells the action, if a reading shows work. */
export function fallByWork(draft: Draft): void {
  const { state } = draft
  const { proof, ending, phase } = state
  if (!readsMember(state)) return
  sayLostWork(draft)
  const marks = ending.marks ?? proof.verdict?.scopes ?? null
  if (phase === 'idle' && workSeen(state, draft.policy, marks)) loseIdle(draft)
}
