/** Groups of what may happen beside what every search plays: each makes a search wider. */
export type Group =
  /** A process stops and goes on: its clock stands still, and hidden work with it. */
  | 'stops'
  /** A count goes up and down between two looks. */
  | 'blinks'
  /** Work waits for the member in the balancer. */
  | 'queues'
  /** A look without one of its processes. */
  | 'partial'
  /** A process is not listed, and listed again. */
  | 'unlisted'
  /** The balancer contradicts itself about the state. */
  | 'contradicts'
  /** A change that is called refused is carried out. */
  | 'half-made'
  /** A reload that brings an older state back. */
  | 'state-file'
  /** A member that was gone is there again. */
  | 'returns'
  /** A call that is given up goes on. */
  | 'given-up'
  /** Another run: a drain, a `ready()`, or the same one resumed from its ticket. */
  | 'next-run'
  /** A run that goes on step by step from its ticket. */
  | 'steps'
  /** The floor says no, before or after the first hold. */
  | 'floor'
  /** What was called idle is looked at once more; a hold that cuts by now is not sent. */
  | 'doubts'
  /** Health checks, the caller's own included. */
  | 'health'
  /** What a member inherits. */
  | 'inherits'
  /** Other runs of this process see the member. */
  | 'elsewhere'

export interface World {
  /** For how long work that is bound shows in no count. */
  readonly blind: number
  /** How old numbers can be when they are read. */
  readonly freshness: number
  /** Whether clients with a session come under drain. */
  readonly persistent: boolean
  /** Whether looks list every process there is. */
  readonly listsAll: boolean
  readonly counts: 'arrivals' | 'no arrivals' | 'none'
  /** Whether a process tells its own clock. */
  readonly tellsClock: boolean
  /** Whether the provider says itself if the member is sealed. */
  readonly sealed: 'untold' | 'told'
  /** Whether the provider says that it can't see everything. */
  readonly unverified: boolean
  readonly may: readonly Group[]
}

export const WORLD: World = {
  blind: 0,
  freshness: 0,
  persistent: true,
  listsAll: false,
  counts: 'arrivals',
  tellsClock: false,
  sealed: 'untold',
  unverified: false,
  may: [],
}
