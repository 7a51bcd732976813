import type { DrainableError } from '../../provider/error.js'

/** Asked in the moment in which a change would leave: why it may not, or undefined. */
export type Permit = () => DrainableError | undefined

/** What a run changes balancers by, where that is a lease. */
export interface LeaseTerm {
  readonly permit: Permit
  /** What goes into its tickets. */
  readonly mark: { readonly name: string; readonly fence: number }
}
