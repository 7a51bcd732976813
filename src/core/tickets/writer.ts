import { dropTicket, saveTicket } from './saved.js'
import type { TicketStore } from './store.js'
import type { Ticket } from './ticket.js'

/** Where tickets go. */
export interface TicketTargets {
  readonly store: TicketStore | undefined
  readonly onTicket: ((t: Ticket) => Promise<void> | void) | undefined
}

/** Writes one ticket to everybody who keeps it; writings go out one after another, in order. */
export class TicketWriter {
  readonly #id: string
  readonly #targets: TicketTargets
  #writing: Promise<void> = Promise.resolve()
  /** A writing that has not begun yet: whoever asks meanwhile is served by it. */
  #waiting: Promise<void> | undefined
  #closed = false
  #handedOver = false

  constructor(id: string, targets: TicketTargets) {
    this.#id = id
    this.#targets = targets
  }

  /** Whether anybody keeps the ticket. */
  get kept(): boolean {
    const { store, onTicket } = this.#targets
    return store !== undefined || onTicket !== undefined
  }

  /**
   * Writes the ticket as it is when the writing begins, which is at least what it is now; rejects where
   * somebody who keeps it could not.
   */
  save(current: () => Ticket): Promise<void> {
    if (!this.kept || this.#closed) return Promise.resolve()
    if (this.#waiting !== undefined) return this.#waiting
    const before = this.#writing
    const write = (async () => {
      await before.catch(() => undefined)
      this.#waiting = undefined
      if (!this.#closed) await this.#write(current())
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

  /**
   * Another run writes this ticket from now on: once all that was asked for is written, nothing of this one is,
   * and it is not forgotten by it either.
   */
  async handOver(): Promise<void> {
    this.#handedOver = true
    let last: Promise<void>
    do {
      last = this.#writing
      await this.written()
    } while (last !== this.#writing)
    this.#closed = true
  }

  /** Writes nothing any more and forgets the ticket in the store: nothing is left to undo. */
  async drop(): Promise<void> {
    this.#closed = true
    await this.written()
    const { store } = this.#targets
    if (store !== undefined && !this.#handedOver) await dropTicket(store, this.#id)
  }

  async #write(ticket: Ticket): Promise<void> {
    const { store, onTicket } = this.#targets
    if (store !== undefined) await saveTicket(store, ticket)
    await onTicket?.(ticket)
  }
}
