import type { Change, MemberRef } from './contract.js'

/**
 * The state that a controller wants one member to have. `toDesired` of `drainable/endpoints` makes it from decisions;
 * `planChanges` and a reconciler compare it with the balancer.
 */
export interface DesiredMember {
  /** The pool it belongs to. */
  readonly pool: string
  /**
   * The member's name. With an address, the address decides which member is meant, and the name is used only to add
   * one: under another name that begins the same, if a member at another address has it. Without an address, the name
   * decides. Of several entries that mean one member, the state that wants most of it counts: `serve` before `drain`
   * before `absent`. `set()` of a reconciler refuses that for entries by name alone.
   */
  readonly member?: string
  /** Its address; IPv6 in any spelling. Not its name: no name is resolved, and a reconciler refuses it. */
  readonly address?: string
  /** Its port. Without one, every port of the address is meant. */
  readonly port?: number
  /** `serve`: it gets work. `drain`: it gets no new work. `absent`: it is drained, and taken out once it is idle. */
  readonly state: 'serve' | 'drain' | 'absent'
  /** The weight to add it with. Default: the balancer's own. */
  readonly weight?: number
  /** The reason, for people. */
  readonly reason?: string
  /** `false`: it does not answer any more, so a drain holds it like a member that is gone. Default: true. */
  readonly serving?: boolean
  /** `skip`: it can serve if the balancer has it, but is never added. Default: `add` for `serve`. */
  readonly ifAbsent?: 'add' | 'skip'
}

/** One planned change and its reason. */
export interface PlannedChange {
  readonly change: Change
  readonly reason: string
  /**
   * How many other members of the pool must still take new work when the change is made; at most 1 for a member that
   * is gone, because it has no capacity to lose. Absent for a change that takes no capacity away.
   */
  readonly keepReady?: number
}

/** A member that is left unchanged although it is not as wanted. */
export interface HeldBack {
  readonly ref: MemberRef
  readonly reason: string
  /** `true`: it belongs to another client, but is as wanted. */
  readonly asWished?: true
}

/** The changes to make, and the members held back for now. `formatPlan` prints it. */
export interface Plan {
  /**
   * The changes to make. A hold is only the beginning of a drain: `carryOut` of `drainable` makes the complete drain.
   */
  readonly changes: readonly Change[]
  /** The same changes with their reasons. */
  readonly steps: readonly PlannedChange[]
  readonly held: readonly HeldBack[]
  /** What people should also know before they carry it out. */
  readonly notes?: readonly string[]
}
