import type { PresentReading } from '../../provider/contract.js'
import { DrainableError } from '../../provider/error.js'
import { formatRef } from '../../provider/member-ref.js'
import type { Draft, Open } from './draft.js'
import { loseIdle } from './idle.js'
import { maintEffect } from './policy.js'
import type { Claim } from './record.js'
import { ownOf } from './sight.js'
import { isRefused } from './whose.js'

/** Sends the hold that the claim wants. The first one needs the floor's consent. */
export function sendHold(draft: Draft, claim: Open): void {
  if (claim.wish === 'none') return
  const change = { kind: 'hold' as const, to: claim.wish, ref: draft.ref, ...draft.identity }
  if (!isRefused(draft.ledger, change)) {
    const isFirst = claim.floor === 'unasked' || claim.floor === 'reserved'
    const { input } = draft
    // Its own view's look is what the floor is asked by.
    if (isFirst && (input.type !== 'look' || input.view !== claim.view)) return
    if (draft.send(claim, change, isFirst) && isFirst) claim.floor = 'granted'
    return
  }
  loseIdle(draft, claim) // it was kept for as long as it could still be put back
  endRefused(draft, claim)
  if (ownOf(draft.sight(claim)) === 'ready') draft.phase(claim, 'active')
}

/** Ends a claim that can't go on without a change that was refused for good. */
export function endRefused(draft: Draft, claim: Open): void {
  const error = draft.ledger.refusal?.error
  if (error === undefined) return
  const { ref } = draft
  const words = `${formatRef(ref)}: the drain could not be put back: ${error.message}`
  draft.lose(claim, new DrainableError('IDLE_LOST', words, { ref, cause: error }))
  draft.finish(claim, 'refused', error)
}

/** Whether the caller's word lets work be cut now: `terminate` at any time, `remove` from the deadline on. */
export function mayCut({ policy, ending }: Pick<Claim, 'policy' | 'ending'>): boolean {
  if (policy.onTimeout === 'terminate') return true
  return policy.onTimeout === 'remove' && ending.terminateUntil !== null
}

/** Raises to maint if the product has it above the present state; a raise that cuts needs the caller's permission. */
export function raise(draft: Draft, claim: Open, reading: PresentReading): void {
  const effect = maintEffect(claim.policy, reading)
  if (effect === 'none' || reading.own === 'maint' || reading.sealed === true) return
  if (effect !== 'gentle' && !mayCut(claim)) return
  if (isRefused(draft.ledger, { kind: 'hold', to: 'maint', ref: draft.ref })) return
  claim.wish = 'maint'
  draft.proof(claim, { verdict: null })
  sendHold(draft, claim)
}

/**
 * If maint cuts, a seal is not put straight back over live work (drain, prove and seal again), and any other maint
 * only if the caller allowed the cut.
 */
export function lowerSeal(claim: Open, reading: PresentReading): void {
  const { policy, wish, escalated } = claim
  const isWorded = mayCut(claim) && (policy.hold === 'maint' || escalated)
  if (wish !== 'maint' || isWorded || maintEffect(policy, reading) === 'gentle') return
  lowerWish(claim)
}

export function lowerWish(claim: Open): void {
  claim.wish = 'drain'
  if (claim.confirmed !== 'none') claim.confirmed = 'drain'
}
