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
