import type { PresentReading } from '../../../provider/contract.js'
import type { Draft } from '../draft.js'
import { maintEffect } from '../policy.js'
import { marksOf, verdictStands } from '../proof.js'
import { isRefused } from '../result.js'
import type { DrainState } from '../state.js'
import { send } from './send.js'

/** A seal that was refused that often is done without. */
const MOST_SEALS = 3

/**
 * The rule is satisfied: close the door to persistent clients where that is wished, and look once more.
 *
 * @returns whether the member is idle now
 */
export function closeDoor(draft: Draft, reading: PresentReading): boolean {
  const { state } = draft
  const { verdict, sealFailures } = state.proof
  if (verdict === null) return false
  const closed = isClosed(reading)
  const raised = closed || reading.own === 'maint'
  const seal = { kind: 'hold' as const, to: 'maint' as const, ref: state.ref, ...draft.identity }
  const wanted = !raised && sealFailures < MOST_SEALS && sealWished(draft, reading)
  if (wanted && !isRefused(state, seal)) {
    if (send(draft, seal)) draft.hold({ wish: 'maint' })
    // A wait is on after a refusal: the verdict is found anew then.
    else draft.proof({ verdict: null })
    return false
  }
  if (verdict.at !== draft.now) {
    const stands = verdictStands(state)
    // Something slipped in: the drain goes on, under maint, by the whole rule.
    if (stands === 'fell') draft.proof({ verdict: null })
    if (stands !== 'stands') return false
  }
  sayIdle(draft, reading, closed)
  return true
}

/** What the provider says of the door itself counts more than the state. */
function isClosed({ own, sealed }: PresentReading): boolean {
  return sealed ?? own === 'maint'
}

/** Whether a door that was found closed, by whomever, is open again before the outcome was said. */
export function isUnsealed({ proof, ending }: DrainState, reading: PresentReading): boolean {
  return proof.sealed && !ending.settled && !isClosed(reading)
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
  const uncounted =
    draft.policy.capabilities.counts === 'none'
      ? 'this product does not count work: idle is its own word'
      : null
  const { proof } = verdict
  draft.proof({ proof, sealed, unverified: reading.unverified ?? uncounted })
  if (draft.state.ending.settled) draft.ending({ marks: marksOf(draft.state) })
  draft.phase('idle')
  draft.emit({ type: 'idle', ...draft.stamp, proof })
}
