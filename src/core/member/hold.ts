import type { PresentReading } from '../../provider/contract.js'
import { DrainableError } from '../../provider/error.js'
import { formatRef } from '../../provider/member-ref.js'
import type { Draft, Open } from './draft.js'
import { isReportedIdle, loseIdle } from './idle.js'
import { type Claim, type MachinePolicy, maintEffect } from './record.js'
import { loadOf, ownOf } from './claimed.js'
import { isRefused } from './whose.js'

/** Sends the hold that the claim wants. The first one needs the floor's consent. */
export function sendHold(draft: Draft, claim: Open): void {
  if (claim.wish === 'none') return
  const change = { kind: 'hold' as const, to: claim.wish, ref: draft.ref, ...draft.identity }
  if (!isRefused(draft.ledger, change)) {
    const isFirst = claim.floor === 'unasked' || claim.floor === 'reserved'
    // Its own view's look is what the floor is asked by.
    if (isFirst && draft.ownLook(claim) === undefined) return
    if (draft.send(claim, change, isFirst) && isFirst) claim.floor = 'granted'
    return
  }
  loseIdle(draft, claim) // it was kept for as long as it could still be put back
  endRefused(draft, claim)
  if (ownOf(draft.claimed(claim)) === 'ready') draft.phase(claim, 'active')
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

// --- how a member is taken out of its pool, and what is said of one that was not idle then

/** If a lost change of ours took effect after the removal, it would hit whatever member has the name then: they must be over. */
export function remove(draft: Draft, claim: Open): void {
  if (draft.ledger.late.length > 0) return
  const change = { kind: 'remove' as const, ref: draft.ref, ...draft.identity }
  if (isRefused(draft.ledger, change)) endRefused(draft, claim)
  else if (draft.send(claim, change)) draft.ending(claim, { left: loadOf({ claim }) })
}

/** The policy of a claim beside others of its call. */
export function besideOthers(policy: MachinePolicy): MachinePolicy {
  const { until, capabilities } = policy
  const reloads = until === 'removed' && capabilities.removalReloads === true
  return reloads ? { ...policy, until: 'together' } : policy
}

/** Whether it is idle and waits for the other members of its call, to be taken out with them. */
export function awaitsOthers(claim: Claim): boolean {
  return claim.policy.until === 'together' && isReportedIdle(claim) && claim.ending.holding
}

/** Why the removal of a member that was not proved idle is not verified. */
export function saidUnproved(claim: Claim): string {
  const { terminated, terminatedAtMost, left } = claim.ending
  const words = 'it was taken out at the deadline, before it was proved idle'
  if (terminated > 0)
    return `${words}: ${terminatedAtMost ? 'up to ' : ''}${terminated} in flight cut`
  return left === 0 ? words : `${words}: ${left} in flight left to end by themselves`
}

/** Why a removal that is not this claim's own word is not verified: by another drain, or by a process that has died. */
export function saidTakenOut(claim: Claim): string {
  const load = loadOf({ claim })
  const words = 'it was taken out before this drain had proved it idle'
  return load === 0 ? words : `${words}: ${load} in flight when it was last read`
}
