import { wallOf, type Clock } from '../../provider/clock.js'
import type { DrainState } from '../machine/state.js'
import { freezeMember } from './freeze.js'
import { stampOf } from './host.js'
import type { Ticket } from './ticket.js'
import { dropTicket, saveTicket } from './saved.js'
import type { TicketStore } from './store.js'

/** Where tickets go. */
export interface TicketTargets {
  readonly store: TicketStore | undefined
  readonly onTicket: ((t: Ticket) => Promise<void> | void) | undefined
}

/** What a ticket says of the drain as a whole. */
export type TicketHead = Pick<
  Ticket,
  'id' | 'instance' | 'parts' | 'startedAt' | 'deadline' | 'policy' | 'owner' | 'lease'
>

/** Writes the ticket of one run to everybody who keeps it; writings go out one after another, in order. */
export class TicketKeeper {
  readonly head: TicketHead
  readonly #targets: TicketTargets
  readonly #clock: Clock
  #writing: Promise<void> = Promise.resolve()
  /** A writing that has not begun yet: whoever asks meanwhile is served by it. */
  #waiting: Promise<void> | undefined
  #closed = false

  constructor(head: TicketHead, targets: TicketTargets, clock: Clock) {
    this.head = head
    this.#targets = targets
    this.#clock = clock
  }

  /** Whether anybody keeps the ticket. */
  get kept(): boolean {
    const { store, onTicket } = this.#targets
    return store !== undefined || onTicket !== undefined
  }

  /** The ticket as of now. */
  ticket(states: Iterable<DrainState>): Ticket {
    const offset = wallOf(this.#clock) - this.#clock.now()
    return {
      v: 1,
      ...this.head,
      saved: stampOf(this.#clock),
      members: [...states].map((state) => freezeMember(state, offset)),
    }
  }

  /**
   * Writes the ticket as it is when the writing begins, which is at least what it is now; rejects where
   * somebody who keeps it could not.
   */
  save(states: () => Iterable<DrainState>): Promise<void> {
    if (!this.kept || this.#closed) return Promise.resolve()
    if (this.#waiting !== undefined) return this.#waiting
    const before = this.#writing
    const write = (async () => {
      await before.catch(() => undefined)
      this.#waiting = undefined
      await this.#write(this.ticket(states()))
    })()
    this.#waiting = write
    this.#writing = write
    write.catch(() => undefined) // whoever asked sees it
    return write
  }

  /** Resolves when every writing that was asked for is over, however. */
  async written(): Promise<void> {
    await this.#writing.catch(() => undefined)
  }

  /** Writes nothing any more and forgets the ticket in the store: nothing is left to undo. */
  async drop(): Promise<void> {
    this.#closed = true
    await this.written()
    const { store } = this.#targets
    if (store !== undefined) await dropTicket(store, this.head.id)
  }

  async #write(ticket: Ticket): Promise<void> {
    if (this.#closed) return
    const { store, onTicket } = this.#targets
    if (store !== undefined) await saveTicket(store, ticket)
    await onTicket?.(ticket)
  }
}
