import type { MemberRef } from '../../../provider/contract.js'

/** A member as the caller names it, and as the store does. */
export interface Wanted {
  readonly ref: MemberRef
  readonly service: string
  readonly member: string
}
