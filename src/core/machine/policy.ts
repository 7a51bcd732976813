import type { Capabilities, MaintEffect, PresentReading } from '../../provider/contract.js'

/** What the machine is told about the drain; never changes while it runs. Durations in milliseconds. */
export interface MachinePolicy {
  readonly hold: 'drain' | 'maint'
  /** Raise to maint on the verdict: never, where maint is gentle, or wherever there is a maint. */
  readonly seal: 'never' | 'gentle' | 'always'
  readonly settle: number
  readonly until: 'idle' | 'removed'
  readonly onTimeout: 'fail' | 'terminate' | 'proceed'
  readonly onOverrule: 'reapply' | 'fail'
  /** Where the floor of serving members says no: end, or wait. */
  readonly onMinimum: 'fail' | 'wait'
  /** Raise to maint that long after the start; null: never. */
  readonly escalateAfter: number | null
  readonly capabilities: Capabilities
}

/** What raising this member to maint does to its work. */
export function maintEffect(policy: MachinePolicy, reading: PresentReading): MaintEffect {
  if (!policy.capabilities.ladder.includes('maint')) return 'none'
  return reading.maint ?? policy.capabilities.maint
}
