import type { MemberRef, Snapshot } from '../../../provider/contract.js'
import type { DrainableError } from '../../../provider/error.js'

/** What one look brought: either the snapshot or why there is none. */
export type Look =
  | (LookTimes & { readonly snapshot: Snapshot; readonly error?: never })
  | (LookTimes & { readonly snapshot?: never; readonly error: DrainableError })

/** A look that came back. */
export type SeenLook = Extract<Look, { readonly snapshot: Snapshot }>

interface LookTimes {
  readonly askedAt: number
  readonly at: number
  /** How long the answer took; 0 where it was not asked for (a push). */
  readonly took: number
}

/** A subscriber that wants to be shown some members from time to time. */
export interface Subscriber {
  /** Asked anew for each look. */
  readonly refs: () => readonly MemberRef[] | 'all'
  /** Called with every look that included its members. */
  readonly see: (look: Look) => void
  /** Whether this alone should keep the process alive. */
  readonly background: boolean
}
