/** How a member is taken out of its pool, and what is said of one that was not idle then. */
import type { Draft, Open } from './draft.js'
import { endRefused } from './hold.js'
import { isReportedIdle } from './idle.js'
import type { MachinePolicy } from './policy.js'
import type { Claim } from './record.js'
import { loadOf } from './sight.js'
import { isRefused } from './whose.js'

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
