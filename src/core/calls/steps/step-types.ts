import type { DrainReport, Outcome, Phase, Why } from '../../../provider/report.js'
import type { Ticket } from '../../tickets/ticket.js'
import type { Duration } from '../../../provider/duration.js'
import type { Call } from '../call-options.js'
import type { Policy } from '../policy.js'
import type { Target } from '../target.js'

/** Options of `stepDrain`. */
export interface StepOptions extends Call, Pick<Policy, 'tickets' | 'onTicket'> {
  /**
   * How long the step may go on. A limit that is too short for one proof is refused, with the time that is needed. A
   * removal waits in one step until lost changes can't come any more: a limit shorter than that leaves it to the deadline.
   * @defaultValue about as long as one proof can need; with `until: 'removed'` as long as a lost change can come, too
   */
  readonly limit?: Duration | undefined
  /**
   * The shortest {@link DrainStep.againIn}, for a queue that can't come back sooner. It does not apply to 0: an
   * intended change is to be sent at once.
   * @defaultValue `'500ms'`, sooner only if something is due
   */
  readonly pace?: Duration | undefined
}

/** The target and policy of a drain that `stepDrain` begins. */
export interface StepStart {
  readonly target: Target
  readonly policy?: Omit<Policy, keyof Call | 'tickets' | 'onTicket' | 'pace'>
}

/** The result of one step. */
export interface DrainStep {
  /** The ticket to keep: the next step continues from it. */
  readonly ticket: Ticket
  /** The least advanced phase of the members. */
  readonly phase: Phase
  /** Present once every member has an outcome. */
  readonly outcome?: Outcome
  readonly why: readonly Why[]
  /** Milliseconds until the next step is useful. 0: at once, to send an intended change. */
  readonly againIn: number
}

/** One step as it was made, with what the drain has come to as a whole. */
export interface StepDone {
  readonly step: DrainStep
  readonly report: DrainReport
}

const ORDER: readonly Phase[] = ['active', 'draining', 'idle', 'removed']

/** The least advanced phase of several members. */
export function leastAdvanced(phases: readonly Phase[]): Phase {
  return ORDER[Math.min(...phases.map((phase) => ORDER.indexOf(phase)))] ?? 'active'
}
