import type { Clock } from '../provider/clock.js'
import type { DrainableProvider, Reading } from '../provider/contract.js'
import type { PlannedChange } from '../provider/desired.js'
import type { DrainReport } from '../provider/report.js'
import type { Call } from './calls/call-options.js'
import type { HandleBody } from './calls/handle.js'
import type { ResolvedPolicy } from './calls/policy.js'
import type { ReadyOptions, ReadyReport } from './calls/ready.js'
import type { PartHooks } from './calls/run/run-spec.js'
import type { Run } from './calls/run/run.js'
import type { CarryOutReport } from './calls/steps/carry-out.js'
import type { StepDone, StepStart } from './calls/steps/step-types.js'
import type { Target } from './calls/target.js'
import type { DrainEvent } from './events.js'
import type { Ticket } from './tickets/ticket.js'

/** The balancers of a combined provider. */
export interface Parts {
  /** By the keys that were given; they are the `balancer` of every ref. */
  readonly all: ReadonlyMap<string, DrainableProvider>
  /** Whether a balancer that an address hits nothing of is left out. */
  readonly onMissing: 'skip' | 'fail'
}

/** A call with its clock and its signal filled in. */
export interface Timed {
  readonly clock: Clock
  readonly signal: AbortSignal
}

type Hear = ((event: DrainEvent) => void) | undefined

/**
 * What a provider of several balancers brings along: its balancers, and each verb for all of them together. A verb
 * checks what it was given, then hands over to the function of its name, and says as `one` how it is done on one balancer.
 * So the verbs import nothing of it, and a program that combines nothing has none of it.
 */
export interface Combined extends Parts {
  readonly drain: (
    target: Target,
    policy: ResolvedPolicy,
    subject: string,
    emit: (event: DrainEvent) => void,
  ) => HandleBody
  readonly resume: (
    ticket: Ticket,
    policy: ResolvedPolicy,
    subject: string,
    emit: (event: DrainEvent) => void,
  ) => HandleBody
  readonly restore: (
    ticket: Ticket,
    policy: ResolvedPolicy,
    one: (part: DrainableProvider, own: Ticket, policy: ResolvedPolicy) => Promise<DrainReport>,
  ) => Promise<DrainReport>
  readonly watch: (
    target: Target,
    policy: ResolvedPolicy,
    subject: string,
    emit: (event: DrainEvent) => void,
    one: (part: DrainableProvider, own: Target, hooks: PartHooks) => Run,
  ) => HandleBody
  readonly select: (
    target: Target | 'all',
    subject: string,
    call: Timed,
    one: (part: DrainableProvider, own: Target | 'all') => Promise<readonly Reading[]>,
  ) => Promise<readonly Reading[]>
  readonly ready: (
    target: Target,
    options: ReadyOptions & Timed,
    subject: string,
    one: (
      part: DrainableProvider,
      own: Target,
      options: ReadyOptions,
      ended: (report: DrainReport) => void,
    ) => Promise<ReadyReport>,
  ) => Promise<ReadyReport>
  readonly step: (
    from: Ticket | StepStart,
    call: Call,
    one: (part: DrainableProvider, own: Ticket | StepStart, onEvent: Hear) => Promise<StepDone>,
  ) => Promise<StepDone>
  readonly carryOut: (
    steps: readonly PlannedChange[],
    call: Pick<Call, 'signal' | 'onEvent'>,
    subject: string,
    one: (
      part: DrainableProvider,
      own: readonly PlannedChange[],
      onEvent: Hear,
    ) => Promise<CarryOutReport>,
  ) => Promise<CarryOutReport>
}

/** ESM and CJS copies of this module meet: the mark is found by any of them. */
const COMBINED = Symbol.for('drainable.combined.1')

/** Marks a provider as a combined one. */
export function withCombined<P extends DrainableProvider>(provider: P, combined: Combined): P {
  return Object.defineProperty(provider, COMBINED, { value: combined })
}

/** What a combined provider brings along; undefined for any other. */
export function combinedOf(provider: DrainableProvider): Combined | undefined {
  return (provider as unknown as Record<symbol, Combined | undefined>)[COMBINED]
}
