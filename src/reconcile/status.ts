import type { MemberStatus } from '../core/status.js'

/** Where a member stands that is not simply as wished. Plain JSON: what the status of a custom resource shows. */
export interface ReconciledMember extends MemberStatus {
  /** What is wanted of it: that it serves, is drained, or is taken out. `unknown`: nothing was said about its pool. */
  readonly want: 'serve' | 'drain' | 'absent' | 'unknown'
  /** Why it is not, or not yet, as wanted, where that is not only a matter of its work; null for nothing. */
  readonly held: string | null
}
