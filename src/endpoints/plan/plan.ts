import type { Capabilities, PresentReading, Reading } from '../../provider/contract.js'

/** Options of {@link planChanges}: the pools and members of a plan, and its limits. */
export interface PlanOptions {
  /**
   * The pools that `desired` describes, each completely: a member of these pools that it does not name has no
   * endpoint any more. Other pools are not touched, and `desired` must not name them. Keep naming the pool of an
   * emptied Service here, to tell it from a pool that is not yours.
   */
  readonly pools: readonly string[]
  /**
   * Which members of these pools can be changed; the others are reported as foreign and left alone. Decide by
   * something that only your members have, such as a prefix of their names: a virtual machine or a backup server in
   * the same pool has no endpoint either. `() => true` claims every member. A plan has no memory, so a member of
   * yours that an operator holds is made ready again if its endpoint serves.
   */
  readonly owns: (reading: Reading) => boolean
  /**
   * How many members of each pool must still take new work. Members count if they would serve: not down, weight above
   * 0, and their endpoint is not gone. One of which no check has passed yet (health `unknown`) does not count where a
   * member that works is to be held. A member that is gone is held anyway while another one counts, because it has
   * no capacity to lose. @default 1
   */
  readonly keepReady?: number
  /**
   * How to hold a member that does not answer any more. `maint` applies even if its effect on established work is not
   * known; if maint is known to cut, `drain` is used anyway. Default: `maint` if maint is known to keep established
   * work, else `drain`.
   */
  readonly gone?: 'maint' | 'drain'
  /**
   * Whether an empty desired list means that every member of its pool is gone. `keepReady` is then 0 unless it is
   * given. @default false
   */
  readonly allowEmpty?: boolean
  /** `false` while the cache behind `desired` has not seen its first complete list: nothing is planned. @default true */
  readonly synced?: boolean
  /**
   * Which drained members are proved idle: only those are removed. One snapshot of zeros proves nothing; a drain's
   * report does. Default: those in maint that every process itself reports as `released`.
   */
  readonly idle?: (reading: Reading) => boolean
  /**
   * What the product can do, from `describe()`: changes that it can't make are reported instead of planned, and the
   * effect of `maint` is known.
   */
  readonly capabilities?: Pick<Capabilities, 'ladder' | 'maint' | 'add' | 'remove'>
}

export type { HeldBack, Plan, PlannedChange } from '../../provider/desired.js'

/** What one member is to become, before the floor is looked at. */
export interface Wish {
  readonly reading: PresentReading
  readonly state: 'serve' | 'drain' | 'gone'
  readonly reason: string
  /** Whether it may be taken out once it is idle. */
  readonly remove: boolean
}
