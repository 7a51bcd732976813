import type { Outcome, Phase, Why } from '../../provider/report.js'
import type { Ticket } from '../tickets/ticket.js'
import type { Duration } from '../../provider/duration.js'
import type { Call } from './call.js'
import type { Policy } from './policy.js'
import type { Target } from './target.js'

/** Options of `stepDrain`. */
export interface StepOptions extends Call {
  /**
   * The shortest {@link DrainStep.againIn}, for a queue that comes back no sooner. Not where it is 0: an intended change
   * is to be sent at once.
   * @defaultValue `'500ms'`, sooner only where something is due
   */
  readonly pace?: Duration | undefined
}

/** A drain to be begun by `stepDrain`. */
export interface StepStart {
  readonly target: Target
  readonly policy?: Omit<Policy, keyof Call | 'tickets' | 'onTicket' | 'pace'>
}

/** What one step brought. */
export interface DrainStep {
  /** Keep it: the next step goes on from here. */
  readonly ticket: Ticket
  /** The least advanced phase of the members. */
  readonly phase: Phase
  /** There once every member has one. */
  readonly outcome?: Outcome
  readonly why: readonly Why[]
  /** Milliseconds after which the next step is worth while. 0: at once, an intended change is to be sent. */
  readonly againIn: number
}

const ORDER: readonly Phase[] = ['active', 'draining', 'idle', 'removed']

/** The phase that several members are in together. */
export function leastAdvanced(phases: readonly Phase[]): Phase {
  return ORDER[Math.min(...phases.map((phase) => ORDER.indexOf(phase)))] ?? 'active'
}
