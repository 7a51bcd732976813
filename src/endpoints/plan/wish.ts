import type { PresentReading } from '../../provider/contract.js'

/** What one member is to become, before the floor is looked at. */
export interface Wish {
  readonly reading: PresentReading
  readonly state: 'serve' | 'drain' | 'gone'
  readonly reason: string
  /** Whether it may be taken out once it is idle. */
  readonly remove: boolean
}
