import type { NitroSession } from './session.js'
import type { Standing, Standings } from './standing.js'

/** An address that is in charge, as it stood when it was asked. */
export interface InCharge {
  readonly session: NitroSession
  readonly standings: Standings
  readonly standing: Standing
}

/** One address, and what is asked there. */
export interface Address {
  readonly session: NitroSession
  readonly standings: Standings
}
