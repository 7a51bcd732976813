import type { DrainableError } from '../../provider/error.js'

/** Called just before a change is sent: returns why it must not be sent, or undefined. */
export type Permit = () => DrainableError | undefined

/** The lease under which a run changes balancers. */
export interface LeaseTerm {
  readonly permit: Permit
  /** The mark that goes into its tickets. */
  readonly mark: { readonly name: string; readonly fence: number }
}
