import type { inspect as Inspect, InspectOptions } from 'node:util'
import { Hub, HubHandle, type TypedEvents } from '../event-hub.js'
import { DRAIN_EVENTS, type DrainEvent, type LoadEvent } from '../events.js'
import { formatRef, refKey } from '../../provider/member-ref.js'
import type { DrainReport, Why } from '../../provider/report.js'
import type { MemberRef } from '../../provider/contract.js'
import type { RunTelemetry } from '../telemetry.js'
import type { Ticket } from '../tickets/ticket.js'
import type { Opening } from './run/run-spec.js'

/**
 * A drain in progress: an emitter of typed events (eventemitter3), and the same events as an async iterator, which
 * always ends with `end`. After that, listeners still get the events of a held drain: `idle-lost`, `overruled`,
 * `phase`, `idle`, `in-force`, `fault`, `removed`.
 */
export interface Drain extends AsyncDisposable, AsyncIterable<DrainEvent>, TypedEvents<DrainEvent> {
  /** The final report. Always resolves; only `drain()` and `roll()` throw. */
  readonly done: Promise<DrainReport>
  /**
   * Resolves with true once the hold is in force for every member, in every process; with false if the drain ends
   * before that. Never rejects.
   */
  readonly inForce: Promise<boolean>
  /**
   * The present report. A member without an outcome yet has `aborted`: its outcome if the drain were given up now.
   */
  report(): DrainReport
  /** The reasons why it is not idle. */
  why(): readonly Why[]
  /** The present ticket. */
  readonly ticket: Promise<Ticket>
  /**
   * Undoes the changes of this drain, and nothing else, whatever state the drain is in. A member's outcome is then
   * `restored`, or says why not. If {@link Drain.done} has not resolved yet, it resolves after the undo with
   * `aborted`.
   */
  restore(): Promise<DrainReport>
  /**
   * Stops holding the drain; the member stays as it is. Resolves once no call of the drain is in progress and the
   * ticket is complete, or after 2 s. Disposing does the same; it never restores.
   */
  release(): Promise<void>
  /** The same as {@link Drain.release}. */
  close(): Promise<void>
}

/** The implementation behind a handle. */
export interface HandleBody {
  readonly done: Promise<DrainReport>
  readonly inForce: Promise<boolean>
  report(): DrainReport
  why(): readonly Why[]
  ticket(): Promise<Ticket>
  restore(how?: Opening): Promise<DrainReport>
  /** Runs an action while its members are held; the signal fires when one of them is lost. */
  act<T>(action: (signal: AbortSignal) => Promise<T>): Promise<T>
  /** Its members that a look since their last change has shown open, or that are in no pool any more. */
  notDown(): readonly MemberRef[]
  release(): Promise<void>
  /** Resolves when no call is in progress that it still waits for. */
  called(): Promise<void>
}

/** Passes the events of one drain to every listener. */
export class EventHub extends Hub<DrainEvent> {
  readonly #every: number
  /** The last load event of each member that was sent. */
  readonly #said = new Map<string, LoadEvent>()

  /** @param every - the shortest time between two loads of one member, in milliseconds */
  constructor(
    onEvent: ((e: DrainEvent) => void) | undefined,
    every: number | undefined,
    telemetry: RunTelemetry,
  ) {
    super(onEvent, DRAIN_EVENTS, 'end', telemetry)
    this.#every = every ?? 0
  }

  override emit(event: DrainEvent): void {
    if (event.type === 'load' && this.#every > 0) {
      const key = refKey(event.ref)
      if (this.#isTooSoon(event, this.#said.get(key))) return
      this.#said.set(key, event)
    }
    super.emit(event)
  }

  /** An idle member is not told again unless it changes, so its load must not be the one that is left out. */
  #isTooSoon(event: LoadEvent, said: LoadEvent | undefined): boolean {
    if (said === undefined || event.phase === 'idle') return false
    if (event.phase !== said.phase || event.own !== said.own) return false
    const since = Date.parse(event.at) - Date.parse(said.at)
    // A wall clock that was set back must not suppress events.
    return since >= 0 && since < this.#every
  }
}

/** The implementation of {@link Drain}. */
export class DrainHandle extends HubHandle<DrainEvent> implements Drain {
  readonly #body: HandleBody
  readonly #target: string

  /** @param target - what it is about, in words */
  constructor(hub: EventHub, body: HandleBody, target: string) {
    super(hub)
    this.#body = body
    this.#target = target
  }

  get done(): Promise<DrainReport> {
    return this.#body.done
  }

  get inForce(): Promise<boolean> {
    return this.#body.inForce
  }

  get ticket(): Promise<Ticket> {
    return this.#body.ticket()
  }

  report(): DrainReport {
    return this.#body.report()
  }

  why(): readonly Why[] {
    return this.#body.why()
  }

  restore(): Promise<DrainReport> {
    return this.#body.restore()
  }

  /** Another process may use the ticket next: no call from here may take effect after that. */
  async release(): Promise<void> {
    await this.#body.release()
    await this.#body.called()
  }

  close(): Promise<void> {
    return this.release()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release()
  }

  /** What `console.log` shows: the target, each member's phase, and the outcome once there is one. */
  [Symbol.for('nodejs.util.inspect.custom')](
    _depth: number,
    options: InspectOptions,
    inspect: typeof Inspect,
  ): string {
    const { members, outcome } = this.report()
    const shown = {
      target: this.#target,
      phase: Object.fromEntries(members.map(({ ref, phase }) => [formatRef(ref), phase])),
      outcome: this.hasEnded ? outcome : 'in progress',
    }
    return `Drain ${inspect(shown, options)}`
  }
}
