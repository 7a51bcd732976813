import type { Waits } from '../../provider/abort.js'
import type { DrainableProvider, MemberRef } from '../../provider/contract.js'
import type { Why } from '../../provider/report.js'
import type { ResolvedPolicy } from '../../core/calls/policy.js'
import type { OwnHealthCheck } from '../../core/calls/run/run-spec.js'
import type { Term } from '../lease/leadership.js'
import type { RollEvent } from './events.js'
import type { RollLedger, ServerState } from './ledger.js'
import type { LeaseWish, RollOptions } from './options.js'

/** What a roll is made of. */
export interface RollSpec {
  readonly provider: DrainableProvider
  readonly subject: string
  readonly id: string
  readonly policy: ResolvedPolicy
  readonly act: RollOptions['act']
  readonly check: OwnHealthCheck | undefined
  readonly onEvent: ((event: RollEvent) => void) | undefined
  readonly lease: LeaseWish | undefined
  /** When it began, in ISO 8601. Default: now. */
  readonly startedAt?: string
  /** The servers of the ticket that it goes on with: reported until it has begun. It waits for the lease of a process that died. */
  readonly known?: readonly ServerState[]
  /** Finds the servers and refuses what can be refused, before anything is changed. */
  readonly find: (call: Finding) => Promise<Pick<RollLedger, 'plan' | 'servers'>>
}

/** How the servers of a roll are found. */
interface Finding {
  readonly signal: AbortSignal
  /** The calls of store and lease that have no answer yet. */
  readonly waits: Waits
  /** The lease under which it rolls. */
  readonly term: Term | undefined
  /** Takes members for this roll; see {@link LiveRoll}. */
  readonly take: (refs: readonly MemberRef[]) => void
  /** Told what it waits for. */
  readonly say: (why: readonly Why[]) => void
}

/** What one server of a roll needs of the roll. */
export interface RollContext extends Pick<
  RollSpec,
  'provider' | 'subject' | 'policy' | 'act' | 'check'
> {
  readonly ledger: RollLedger
  /** Fires when the roll is aborted. */
  readonly signal: AbortSignal
  readonly emit: (event: RollEvent) => void
  /** Whether other servers are out, which will come back. */
  readonly hasOthers: () => boolean
}
