/** The plain data of a policy, durations in milliseconds; null stands for none. */
export interface PolicyData {
  readonly timeout: number | null
  readonly onTimeout: 'fail' | 'terminate' | 'proceed'
  readonly hold: 'drain' | 'maint'
  readonly escalateAfter: number | null
  readonly settle: number
  readonly until: 'idle' | 'removed'
  readonly seal: boolean | null
  readonly keepReady: number
  readonly onMinimum: 'fail' | 'wait'
  readonly onOverrule: 'reapply' | 'fail'
  readonly onAbort: 'leave' | 'restore'
  readonly ifUnsupported: 'fail' | 'proceed'
}
