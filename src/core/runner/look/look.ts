import type { MemberRef, Snapshot } from '../../../provider/contract.js'
import type { DrainableError } from '../../../provider/error.js'

/** The result of one look: either the snapshot or an error. */
export type Look =
  | (LookTimes & { readonly snapshot: Snapshot; readonly error?: never })
  | (LookTimes & { readonly snapshot?: never; readonly error: DrainableError })

/** A look with a snapshot. */
export type SeenLook = Extract<Look, { readonly snapshot: Snapshot }>

interface LookTimes {
  readonly askedAt: number
  readonly at: number
  /** How long the answer took; 0 for a push. */
  readonly took: number
}

/** A subscriber to looks at some members. */
export interface Subscriber {
  /** Called for each look. */
  readonly refs: () => readonly MemberRef[] | 'all'
  /** Called with every look that included its members. */
  readonly see: (look: Look) => void
  /** Whether it should not keep the process alive. */
  readonly background: boolean
}
