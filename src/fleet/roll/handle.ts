import type { inspect as Inspect, InspectOptions } from 'node:util'
import { formatRef } from '../../provider/member-ref.js'
import type { RollReport, Why } from '../../provider/report.js'
import { DrainableError } from '../../provider/error.js'
import { HubHandle, type Hub, type TypedEvents } from '../../core/event-hub.js'
import type { Ticket } from '../../core/tickets/ticket.js'
import type { RollEvent } from './events.js'
import type { RollRun } from './run.js'

/**
 * A roll in progress: an emitter of typed events, and the same events as an async iterator, which always ends with
 * `roll-end`.
 */
export interface Roll extends AsyncDisposable, AsyncIterable<RollEvent>, TypedEvents<RollEvent> {
  /** The final report. Always resolves; only `roll()` throws. */
  readonly done: Promise<RollReport>
  /** The present report. */
  report(): RollReport
  /** What the servers in progress wait for, and why the next one, or the whole roll, does not begin. */
  why(): readonly Why[]
  /** The present ticket; rejects if the roll could not begin. */
  readonly ticket: Promise<Ticket>
  /** Begins no further server, and resolves when those in progress have finished. */
  stop(): Promise<RollReport>
  /**
   * Ends the roll as an abort does, and resolves when every running `act` has ended. Drains are left or undone as
   * `onAbort` says; servers for which `act` was called stay drained. Disposing does the same. After the end it does
   * nothing.
   */
  close(): Promise<void>
}

/**
 * The implementation of {@link Roll}. It knows a run by its type alone: a class that extends another one stays in every bundle,
 * with all that it imports.
 */
export class RollHandle extends HubHandle<RollEvent> implements Roll {
  readonly #run: RollRun

  constructor(hub: Hub<RollEvent>, run: RollRun) {
    super(hub)
    this.#run = run
  }

  get done(): Promise<RollReport> {
    return this.#run.done
  }

  get ticket(): Promise<Ticket> {
    return this.#run.ticket()
  }

  report(): RollReport {
    return this.#run.report()
  }

  why(): readonly Why[] {
    return this.#run.why()
  }

  stop(): Promise<RollReport> {
    return this.#run.stop()
  }

  close(): Promise<void> {
    return this.#run.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** What `console.log` shows: each server's outcome so far, and the outcome once there is one. */
  [Symbol.for('nodejs.util.inspect.custom')](
    _depth: number,
    options: InspectOptions,
    inspect: typeof Inspect,
  ): string {
    const { servers, outcome } = this.report()
    const outcomes = servers.map(({ refs, outcome }) => [refs.map(formatRef).join(' '), outcome])
    const shown = {
      servers: Object.fromEntries(outcomes) as object,
      outcome: this.hasEnded ? outcome : 'in progress',
    }
    return `Roll ${inspect(shown, options)}`
  }
}

/**
 * The error that `roll()` throws if not every server is done.
 *
 * @param hasTicket - whether the caller keeps its ticket; without one no call can continue it
 */
export function toRollError(report: RollReport, hasTicket: boolean): DrainableError {
  const { servers, error, leftDrained } = report
  const first = servers.find((server) => server.outcome === 'failed' || server.outcome === 'busy')
  const cause = first?.error ?? error
  const count = (outcome: string): number =>
    servers.filter((server) => server.outcome === outcome).length
  const left = leftDrained.length
  const why = cause === undefined ? 'it was stopped' : cause.message
  const isUnbegun = servers.length === 0 && cause !== undefined
  if (isUnbegun) return cause
  const others = Object.entries({ failed: 'failed', busy: 'busy', untouched: 'not begun' })
    .filter(([outcome]) => count(outcome) > 0)
    .map(([outcome, words]) => `, ${count(outcome)} ${words}`)
  const done = `the roll stopped with ${count('done')} of ${servers.length} servers done${others.join('')}`
  const drained = left === 0 ? '' : `; it left ${left} ${left === 1 ? 'member' : 'members'} drained`
  const next = hasTicket
    ? 'resumeRoll() goes on with its ticket'
    : left > 0
      ? 'ready() with error.roll.leftDrained opens what is drained, another roll() begins anew'
      : 'another roll() begins anew'
  const message = `${done}${drained}: ${why}; ${next}`
  return new DrainableError('ROLL_STOPPED', message, {
    roll: report,
    // Its words are in the message; what it stands on, such as what `act` threw, is not.
    cause: cause?.cause,
    ...(first?.refs[0] === undefined ? {} : { ref: first.refs[0] }),
  })
}
