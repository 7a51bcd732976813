import type { DrainableProvider } from '../../provider/contract.js'
import type { ResolvedPolicy } from '../../core/calls/policy.js'
import type { RollEvent } from './events.js'
import type { RollLedger } from './ledger.js'
import type { OwnHealthCheck } from '../../core/calls/run/run-spec.js'
import type { RollOptions } from './options.js'

/** What one server of a roll needs of the roll. */
export interface RollContext {
  readonly provider: DrainableProvider
  readonly subject: string
  readonly policy: ResolvedPolicy
  readonly act: RollOptions['act']
  readonly check: OwnHealthCheck | undefined
  readonly ledger: RollLedger
  /** Fires when the roll is aborted. */
  readonly signal: AbortSignal
  readonly emit: (event: RollEvent) => void
  /** Whether other servers are out, which will come back. */
  readonly hasOthers: () => boolean
  /** Whether a busy server is put back and tried once more later. */
  readonly mayPostpone: () => boolean
}
