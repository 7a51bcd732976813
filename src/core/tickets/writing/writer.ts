import { answerOfStore } from '../answer.js'
import { lineOf, type TicketLine } from './line.js'
import { dropTicket, saveTicket } from '../saved.js'
import type { TicketStore } from '../store.js'
import type { Ticket } from '../ticket.js'

/** Where tickets go. */
export interface TicketTargets {
  readonly store: TicketStore | undefined
  readonly onTicket: ((t: Ticket) => Promise<void> | void) | undefined
}

/**
 * Writes one ticket to every store and listener that keeps it; writings go out one after another, in order, with those of
 * other runs of this process that have the same ticket. One without an answer counts as failed after 30 s, so that it holds
 * no other back. It may be carried out all the same, over a newer one: once it has ended, what is to be there is written
 * once more.
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
  /** Another run of this process goes on with the ticket. */
  #yielded = false

  constructor(id: string, targets: TicketTargets, lease?: Ticket['lease']) {
    this.#id = id
    this.#targets = targets
    this.#lease = lease
  }

  /** Whether the ticket is kept anywhere. */
  get kept(): boolean {
    return this.#keptAt !== undefined
  }

  /** Whether this run has dropped the ticket, or handed it over. */
  get closed(): boolean {
    return this.#closed
  }

  get #keptAt(): object | undefined {
    const { store, onTicket } = this.#targets
    return store ?? onTicket
  }

  /**
   * Writes the ticket as it is when the writing begins, which is at least what it is now; rejects where
   * the store or the callback could not.
   */
  save(current: () => Ticket): Promise<void> {
    if (this.#closed) return Promise.resolve()
    this.#newest = current
    return (this.#waiting ??= this.#enter(async (line) => {
      this.#waiting = undefined
      if (this.#yielded) return
      if (!this.#closed) await this.#write(line, current())
      // The store is about to forget it. A listener can't, and keeps the last one it was given.
      else if (!this.#handedOver) await answerOfStore(this.#tell(current()))
    }))
  }

  /** Resolves when every writing that was asked for is over, however. */
  async written(): Promise<void> {
    await this.#writing.catch(() => undefined)
  }

  /**
   * Another run of this process goes on with this ticket: what this one knows of it says nothing any more, until
   * {@link takeUp}.
   */
  yield(): void {
    this.#yielded = true
  }

  /** This run is about to change something: its ticket must say so, whoever else goes on with it. */
  takeUp(): void {
    this.#yielded = false
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
    await this.#enter((line) => this.#delete(line))
  }

  #enter(task: (line: TicketLine) => Promise<void>): Promise<void> {
    const kept = this.#keptAt
    if (kept === undefined) return Promise.resolve()
    const line = lineOf(kept, this.#id)
    const writing = line.enter(() => task(line))
    this.#writing = writing
    writing.catch(() => undefined) // the call that asked sees it
    return writing
  }

  async #delete(line: TicketLine): Promise<void> {
    const { store } = this.#targets
    if (store === undefined || this.#handedOver) return
    const lease = this.#newest?.().lease ?? this.#lease
    const again = this.#begin(line)
    await answered(dropTicket(store, this.#id, lease), (late) => line.mendAfter(late, again))
  }

  async #write(line: TicketLine, ticket: Ticket): Promise<void> {
    const { store } = this.#targets
    this.#begin(line)
    const write = async (): Promise<void> => {
      if (store !== undefined) await saveTicket(store, ticket)
      await this.#tell(ticket)
    }
    await answered(write(), (late) => line.mendAfter(late))
  }

  async #tell(ticket: Ticket): Promise<void> {
    await this.#targets.onTicket?.(ticket)
  }

  /** What is there at last is this one's doing, until another one begins. */
  #begin(line: TicketLine): () => void {
    const again = (): void => this.#mend(again)
    return (line.again = again)
  }

  /**
   * A writing that no call waits for any more has ended: what is to be there is written once more, unless anything has
   * begun since. That was asked for before, and may have been a drop.
   */
  #mend(again: () => void): void {
    if (this.#handedOver) return
    void this.#enter(async (line) => {
      const newest = this.#newest
      if (line.again !== again) return
      if (this.#closed) await this.#delete(line)
      else if (newest !== undefined) await this.#write(line, newest())
    })
  }
}

/** Waits for an answer as long as a store may take, and tells of one that is still to come after that. */
async function answered(
  answer: Promise<void>,
  late: (answer: Promise<void>) => void,
): Promise<void> {
  const attempt = { hasEnded: false }
  const ending = answer.finally(() => (attempt.hasEnded = true))
  try {
    await answerOfStore(ending)
  } finally {
    if (!attempt.hasEnded) late(ending)
  }
}
