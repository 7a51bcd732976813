import type { Capabilities, MaintEffect, PresentReading } from '../../provider/contract.js'

/** The policy of a claim. Durations in milliseconds. */
export interface MachinePolicy {
  readonly hold: 'drain' | 'maint'
  /** Whether to raise an idle member to maint: never, if maint is gentle, or always if the product has maint. */
  readonly seal: 'never' | 'gentle' | 'always'
  readonly settle: number
  /** `together`: taken out with the other members of its call, because each removal costs a reload. */
  readonly until: 'idle' | 'together' | 'removed'
  readonly onTimeout: 'fail' | 'terminate' | 'proceed' | 'remove'
  readonly onOverrule: 'reapply' | 'fail'
  /** What to do if the floor refuses: end, or wait. */
  readonly onMinimum: 'fail' | 'wait'
  /** How long after the start to raise to maint; null: never. */
  readonly escalateAfter: number | null
  readonly capabilities: Capabilities
}

/** What raising this member to maint does to its work. */
export function maintEffect(policy: MachinePolicy, reading: PresentReading): MaintEffect {
  if (!policy.capabilities.ladder.includes('maint')) return 'none'
  return reading.maint ?? policy.capabilities.maint
}
