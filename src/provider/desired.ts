import type { Change, MemberRef } from './contract.js'

/**
 * What one member should be, as a controller wants it: what `toDesired` of `drainable/endpoints`
 * makes from decisions, and what `planChanges` and a reconciler compare with what they find.
 */
export interface DesiredMember {
  /** The pool it belongs to. */
  readonly pool: string
  /**
   * The member's name. With an address, the address decides which member is meant, and the name is
   * used where one is added; without an address, the name decides.
   */
  readonly member?: string
  /** Its address; IPv6 in any spelling. */
  readonly address?: string
  /** Its port. Without one, every port of the address is meant. */
  readonly port?: number
  /** `serve`: it gets work. `drain`: nothing new. `absent`: drained, and taken out once it is idle. */
  readonly state: 'serve' | 'drain' | 'absent'
  /** The weight to add it with. Default: the balancer's own. */
  readonly weight?: number
  /** Why, for a person. */
  readonly reason?: string
  /** `false`: it does not answer any more, so a drain holds it as one that is gone. Default true. */
  readonly serving?: boolean
  /** `skip`: it may serve where the balancer has it, but is never added. Default: `add` for `serve`. */
  readonly ifAbsent?: 'add' | 'skip'
}

/** One change and why. */
export interface PlannedChange {
  readonly change: Change
  readonly reason: string
  /**
   * How many other members of the pool must go on taking new work when it is carried out; at most 1
   * for a member that is gone, which has no capacity to lose. Not for what takes no work away.
   */
  readonly keepReady?: number
}

/** A member that is left as it is although something about it is not as wished. */
export interface HeldBack {
  readonly ref: MemberRef
  readonly reason: string
  /** It is another client's, and as wished all the same. */
  readonly asWished?: true
}

/** What should be changed, and what should not be yet. `formatPlan` prints it. */
export interface Plan {
  /** What is to be done. A hold is only the beginning of a drain: `carryOut` of `drainable` does all of it. */
  readonly changes: readonly Change[]
  /** The same changes with their reasons. */
  readonly steps: readonly PlannedChange[]
  readonly held: readonly HeldBack[]
  /** What else a person should know before it is carried out. */
  readonly notes?: readonly string[]
}
