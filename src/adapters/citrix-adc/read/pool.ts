import type { DrainableError } from '../../../provider/error.js'
import type { Counts, Entry, Traits } from '../codec/rows.js'

/** A service group, or the services of a virtual server, as found. */
export interface PoolState {
  readonly name: string
  readonly entries: readonly Found[]
  /** Rows of members that can't be read: who serves is not known then. */
  readonly odd: readonly DrainableError[]
  readonly serving: number
  readonly total: number
  readonly whenNone: 'refuse' | 'spill' | 'unknown'
}

/** One member of it, as listed. Traits of a service are its own, those of a member are its group's. */
export interface Listed {
  readonly entry: Entry
  readonly traits: Traits
}

/** One member of it. */
export interface Found extends Listed {
  readonly counts: Counts | undefined
  /** Its server object is disabled. */
  readonly serverDisabled: boolean
  /** The virtual servers that a group is bound to, where that was looked at. */
  readonly vservers: readonly string[] | undefined
  /** When the counts were asked for, by the call's clock. */
  readonly countedAt: number
  /** When its state was asked for. */
  readonly seenAt: number
}

/** What is wanted of a pool: members and services by name, or all of them. */
export type Wanted = readonly string[] | 'all'
