import type { Outcome, Phase, Why } from '../../provider/report.js'
import type { Ticket } from '../tickets/ticket.js'
import type { Duration } from '../../provider/duration.js'
import type { Call } from './call.js'
import type { Policy } from './policy.js'
import type { Target } from './target.js'

/** Options of `stepDrain`. */
export interface StepOptions extends Call {
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

const ORDER: readonly Phase[] = ['active', 'draining', 'idle', 'removed']

/** The least advanced phase of several members. */
export function leastAdvanced(phases: readonly Phase[]): Phase {
  return ORDER[Math.min(...phases.map((phase) => ORDER.indexOf(phase)))] ?? 'active'
}
