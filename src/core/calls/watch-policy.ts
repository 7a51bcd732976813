import type { Capabilities } from '../../provider/contract.js'
import type { MachinePolicy } from '../member/record.js'

/** The policy of a run that changes nothing. */
export function watchPolicy(capabilities: Capabilities, settle: number): MachinePolicy {
  return {
    hold: 'drain',
    seal: 'never',
    settle,
    until: 'idle',
    onTimeout: 'fail',
    onOverrule: 'fail',
    onMinimum: 'fail',
    escalateAfter: null,
    capabilities,
  }
}

/** The policy of a run that only opens. */
export function openPolicy(capabilities: Capabilities): MachinePolicy {
  return watchPolicy(capabilities, 0)
}
