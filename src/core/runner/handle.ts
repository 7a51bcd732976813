import type { TypedEvents } from '../emitter.js'
import { Hub, HubHandle } from '../event-hub.js'
import { DRAIN_EVENTS, type DrainEvent } from '../events.js'
import { refKey } from '../../provider/member-ref.js'
import type { DrainReport, Why } from '../../provider/report.js'
import type { Ticket } from '../tickets/ticket.js'

/**
 * A drain under way: an emitter of typed events (eventemitter3), and the same events as an async
 * iterator, whose last event is always `end`. After that listeners still hear what becomes of a drain
 * that is held: `idle-lost`, `overruled`, `phase`, `idle`, `in-force`, `fault`, `removed`.
 */
export interface Drain extends AsyncDisposable, AsyncIterable<DrainEvent>, TypedEvents<DrainEvent> {
  /** How it ended. Always resolves; only `drain()` and `roll()` throw. */
  readonly done: Promise<DrainReport>
  /** True once the hold was in force for every member, in every process; false where the drain ended before that. Never rejects. */
  readonly inForce: Promise<boolean>
  /** How it goes at the moment. A member without an outcome yet says `aborted`: what it would be if it were given up now. */
  report(): DrainReport
  /** Why it is not idle. */
  why(): readonly Why[]
  /** The ticket as of now. */
  readonly ticket: Promise<Ticket>
  /**
   * Undoes what this drain changed, and only that, whatever state the drain is in. A member's outcome
   * is then `restored`, or says why not. A {@link Drain.done} that has not resolved yet resolves after
   * it with `aborted`.
   */
  restore(): Promise<DrainReport>
  /**
   * Stops holding the drain (the member stays as it is), and resolves once no call of it is under way and
   * the ticket says all that was done, or after 2 s. Disposing does the same; it never restores.
   */
  release(): Promise<void>
  /** The same as {@link Drain.release}. */
  close(): Promise<void>
}

/** What stands behind a handle. */
export interface HandleBody {
  readonly done: Promise<DrainReport>
  readonly inForce: Promise<boolean>
  report(): DrainReport
  why(): readonly Why[]
  ticket(): Promise<Ticket>
  restore(): Promise<DrainReport>
  release(): Promise<void>
  /** Resolves when no call of it is under way any more, or none that it still waits for. */
  called(): Promise<void>
}

/** The events of one drain, handed to every listener. */
export class EventHub extends Hub<DrainEvent> {
  readonly #every: number
  /** When the load of each member was said last, in epoch milliseconds. */
  readonly #said = new Map<string, number>()

  /** @param every - the shortest time between two loads of one member, in milliseconds */
  constructor(onEvent: ((e: DrainEvent) => void) | undefined, every = 0) {
    super(onEvent, DRAIN_EVENTS, 'end')
    this.#every = every
  }

  override emit(event: DrainEvent): void {
    if (event.type === 'load' && this.#every > 0) {
      const key = refKey(event.ref)
      const at = Date.parse(event.at)
      const since = at - (this.#said.get(key) ?? -Infinity)
      // A wall clock that was put back must not silence it.
      if (since >= 0 && since < this.#every) return
      this.#said.set(key, at)
    }
    super.emit(event)
  }
}

/** The handle users get. */
export class DrainHandle extends HubHandle<DrainEvent> implements Drain {
  readonly #body: HandleBody

  constructor(hub: EventHub, body: HandleBody) {
    super(hub)
    this.#body = body
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

  /** The ticket may go elsewhere next: what is still under way here must not be carried out after that. */
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
}
