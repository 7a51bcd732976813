import { answerOfStore } from './answer.js'
import { dropTicket, saveTicket } from './saved.js'
import type { TicketStore } from './store.js'
import type { Ticket } from './ticket.js'

/** Where tickets go. */
export interface TicketTargets {
  readonly store: TicketStore | undefined
  readonly onTicket: ((t: Ticket) => Promise<void> | void) | undefined
}

/**
 * Writes one ticket to every store and listener that keeps it; writings go out one after another, in order. One without an
 * answer counts as failed after 30 s, so that it holds no other back. It may be carried out all the same, over
 * a newer one: once it has ended, what is to be there is written once more.
 */
export class TicketWriter {
  readonly #id: string
  readonly #targets: TicketTargets
  /** Of the ticket that was there before anything was written. */
  readonly #lease: Ticket['lease']
  /** The newest ticket that was to be written. */
  #newest: (() => Ticket) | undefined
  #writing: Promise<void> = Promise.resolve()
  /** A writing that has not begun yet: a call that asks meanwhile is served by it. */
  #waiting: Promise<void> | undefined
  #closed = false
  #handedOver = false

  constructor(id: string, targets: TicketTargets, lease?: Ticket['lease']) {
    this.#id = id
    this.#targets = targets
    this.#lease = lease
  }

  /** Whether the ticket is kept anywhere. */
  get kept(): boolean {
    const { store, onTicket } = this.#targets
    return store !== undefined || onTicket !== undefined
  }

  /**
   * Writes the ticket as it is when the writing begins, which is at least what it is now; rejects where
   * the store or the callback could not.
   */
  save(current: () => Ticket): Promise<void> {
    if (!this.kept || this.#closed) return Promise.resolve()
    this.#newest = current
    if (this.#waiting !== undefined) return this.#waiting
    const before = this.#writing
    const write = (async () => {
      await before.catch(() => undefined)
      this.#waiting = undefined
      if (!this.#closed) await this.#write(current())
    })()
    this.#waiting = write
    this.#writing = write
    write.catch(() => undefined) // the call that asked sees it
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
    await answerOfStore(this.#delete())
  }

  async #delete(): Promise<void> {
    const { store } = this.#targets
    const lease = this.#newest?.().lease ?? this.#lease
    if (store !== undefined && !this.#handedOver) await dropTicket(store, this.#id, lease)
  }

  async #write(ticket: Ticket): Promise<void> {
    const { store, onTicket } = this.#targets
    const attempt = { hasEnded: false }
    const writing = (async () => {
      try {
        if (store !== undefined) await saveTicket(store, ticket)
        await onTicket?.(ticket)
      } finally {
        attempt.hasEnded = true
      }
    })()
    try {
      await answerOfStore(writing)
    } finally {
      if (!attempt.hasEnded) void writing.catch(() => undefined).then(() => this.#mend())
    }
  }

  /** A writing that no call waits for any more has ended. */
  async #mend(): Promise<void> {
    const newest = this.#newest
    if (this.#handedOver || newest === undefined) return
    await (this.#closed ? this.#delete() : this.save(newest)).catch(() => undefined)
  }
}
