import type { MemberStatus } from '../core/status.js'

/** The status of a member that is not simply as wanted. Plain JSON, for the status of a custom resource. */
export interface ReconciledMember extends MemberStatus {
  /**
   * The wanted state: it serves, is drained, or is removed. `unknown`: the desired set says nothing about its pool.
   */
  readonly want: 'serve' | 'drain' | 'absent' | 'unknown'
  /** Why it is not as wanted, or not yet, if its own work is not the only reason; null for no reason. */
  readonly held: string | null
  /**
   * Whether the deadline of its drain has passed and it is not proved idle. The deadline does not move when a drain is
   * tried again.
   */
  readonly pastDeadline: boolean
}
