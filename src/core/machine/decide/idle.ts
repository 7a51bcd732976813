import { DrainableError } from '../../../provider/error.js'
import { formatRef } from '../../../provider/member-ref.js'
import type { Draft } from '../draft.js'
import { marksOf, proveIdle, stillIdle, workSeen } from '../proof.js'
import type { Proof } from '../../../provider/report.js'

/** The proof that the member is idle now; null while a rule is not satisfied. */
export function prove(draft: Draft): Proof | null {
  return proveIdle(draft.state, draft.policy, draft.now, draft.wall - draft.now)
}

/** An idle member of which something else was seen: the drain goes on. */
export function loseIdle(draft: Draft): void {
  draft.proof({ verdict: null })
  if (draft.state.phase !== 'idle') return
  draft.proof({ proof: null, sealed: false })
  if (!draft.state.ending.settled) draft.ending({ ended: null })
  draft.emit({ type: 'idle-lost', ...draft.stamp })
  draft.phase('draining')
}

/**
 * Whether an idle that was said still stands. While other members go on, every process must show what it
 * showed then; once the run has its outcome and only holds, only work that is seen contradicts it.
 */
export function staysIdle(draft: Draft): boolean {
  const { state } = draft
  const { marks } = state.ending
  if (marks === null) return stillIdle(state)
  if (workSeen(state)) return false
  const now = marksOf(state)
  const read = [...now].filter(([name]) => state.proof.scopes.get(name)?.last.state === 'read')
  draft.ending({ marks: new Map([...marks, ...read]) })
  return true
}

/** Says, once, that work came to a member whose idle was said and is held. */
export function sayLostWork(draft: Draft): void {
  const { state } = draft
  if (!workSeen(state)) return
  draft.lose(
    new DrainableError(
      'IDLE_LOST',
      `${formatRef(state.ref)} got work again after it was called idle, see what came in between (a reload that forgot the drain, or another client that opened it)`,
      { ref: state.ref },
    ),
  )
}
