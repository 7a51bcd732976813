import type { Change } from '../../provider/contract.js'
import type { Draft } from './draft.js'
import { maintEffect } from './policy.js'
import { verdictStands } from './proof.js'

/**
 * A maint that would cut what was read since it was decided on is not sent: it may have waited for its
 * ticket, or for another call. What is to be done instead is decided anew.
 */
export function recallRough(draft: Draft, change: Change): void {
  const { state, policy } = draft
  const reading = state.last?.reading
  if (state.hold.pending?.change !== change || reading?.present !== true) return
  if (change.kind !== 'hold' || change.to !== 'maint') return
  if (maintEffect(policy, reading) === 'gentle') return
  const { verdict } = state.proof
  const sealing = verdict !== null && verdict.sealedAt === null
  const word = sealing
    ? policy.seal === 'always' && verdictStands(state) !== 'fell'
    : policy.onTimeout === 'terminate'
  if (word) return
  draft.hold({ pending: null })
  draft.proof({ verdict: null })
  lowerWish(draft)
}

/** Drain is wished from now on, and no more was confirmed. */
export function lowerWish(draft: Draft): void {
  const { confirmed } = draft.state.hold
  draft.hold({ wish: 'drain', confirmed: confirmed === 'none' ? 'none' : 'drain' })
}
