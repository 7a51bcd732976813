import type { Capabilities, Reading } from '../../provider/contract.js'

/** What a plan is about, and how far it may go. */
export interface PlanOptions {
  /**
   * The pools that `desired` speaks for, each as a whole: a member of theirs that it does not name has
   * no endpoint any more. No other pool is touched, and `desired` may name no other. A Service that was
   * emptied is named here still: that is what tells it from one that is not ours.
   */
  readonly pools: readonly string[]
  /**
   * Which members of these pools may be changed; the others are reported as foreign and left alone.
   * Say it by what only your members have, such as a prefix of their names: a virtual machine or a
   * backup server in the same pool has no endpoint either. `() => true` claims every member. A plan
   * remembers nothing, so one of yours that an operator holds by hand is made ready again if its
   * endpoint serves.
   */
  readonly owns: (reading: Reading) => boolean
  /**
   * How many members of each pool must go on taking new work. Counted are members that would serve:
   * not down, weight above 0, and not one whose endpoint is gone. One that is gone is held all the same
   * while another one is counted: it has no capacity to lose. @default 1
   */
  readonly keepReady?: number
  /**
   * How a member is held that does not answer any more. `maint` also where the product's effect on
   * established work is not known; where it is known to cut, `drain` all the same.
   * Default: `maint` where maint is known to keep established work, else `drain`.
   */
  readonly gone?: 'maint' | 'drain'
  /**
   * Take an empty desired list as meant: every member of its pool is gone. `keepReady` is then 0
   * unless it is given. @default false
   */
  readonly allowEmpty?: boolean
  /** `false` while the cache behind `desired` has not seen its first complete list: nothing is planned. @default true */
  readonly synced?: boolean
  /**
   * Which drained members are proved idle: only those are removed. One snapshot of zeros proves
   * nothing, a drain's report does. Default: those in maint where every process says so itself
   * (`released`).
   */
  readonly idle?: (reading: Reading) => boolean
  /** What the product can do, from `describe()`: what it can't is reported instead of planned, and `maint` is known. */
  readonly capabilities?: Pick<Capabilities, 'ladder' | 'maint' | 'add' | 'remove'>
}

export type { HeldBack, Plan, PlannedChange } from '../../provider/desired.js'
