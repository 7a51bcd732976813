import { type Clock, wallOf } from '../../../provider/clock.js'
import type { DrainableError } from '../../../provider/error.js'
import type { Why } from '../../../provider/report.js'
import { abortable, type Bound, Waits, within } from '../../../provider/abort.js'
import { type Asked, LATER_ANSWER, notKept, STORE, storeBound } from '../calls.js'
import { dropTicket, saveTicket } from '../saved.js'
import type { TicketStore } from '../store.js'
import type { Ticket } from '../ticket.js'
import { lineOf, type TicketLine } from './line.js'
import type { ClaimedMember } from '../../member/claimed.js'
import { toTicketMember } from '../member.js'

/** Where tickets go. */
export interface TicketTargets {
  readonly store?: TicketStore | undefined
  readonly onTicket?: ((t: Ticket) => Promise<void> | void) | undefined
  /** In place of the two above: the ticket that this one is a part of. */
  readonly whole?: WholeTicket | undefined
}

/** A ticket with others in it. It is kept for all of them, with its own limits and names. */
export interface WholeTicket {
  /** Who keeps it, for people. */
  readonly peer: string
  /** @param limit - milliseconds */
  save(part: Ticket, limit: number): Promise<void>
  /** Left out: what was saved last stays. */
  drop?(limit: number): Promise<void>
  /** What an earlier ticket of the same id has of this part. */
  earlier?(asked: Asked): Promise<Ticket | undefined>
}

/** A writing that has not begun yet. */
interface Waiting {
  /** The longest limit of those that wait for it, in milliseconds. */
  limit: number
  done: Promise<void>
}

/**
 * Writes one ticket to every store and listener that keeps it; writings go out one after another, in order, with those of
 * other runs of this process that have the same ticket. One without an answer is given up after its limit, so that it holds
 * no other back. It may be carried out all the same, over a newer one: see {@link TicketLine.change}.
 */
export class TicketWriter {
  readonly #id: string
  readonly #targets: TicketTargets
  readonly #clock: Clock
  /** Of the ticket that was there before anything was written. */
  readonly #lease: Ticket['lease']
  readonly waits: Waits
  /** The newest ticket that was to be written. */
  #newest: (() => Ticket) | undefined
  #writing: Promise<void> = Promise.resolve()
  /** A writing that has not begun yet: a call that asks meanwhile is served by it. */
  #waiting: Waiting | undefined
  #closed = false
  #yielded = false
  /** Whether the listener is asked at present, and not the store. */
  #isTelling = false
  /** Why the last writing failed. */
  #failure: DrainableError | undefined

  constructor(
    id: string,
    targets: TicketTargets,
    clock: Clock,
    lease?: Ticket['lease'],
    waits = new Waits(clock),
  ) {
    this.#id = id
    this.#targets = targets
    this.#clock = clock
    this.#lease = lease
    this.waits = waits
  }

  /** Whether the ticket is kept anywhere. */
  get kept(): boolean {
    return this.#keptAt !== undefined
  }

  /** Whether this run has dropped the ticket, or handed it over. */
  get closed(): boolean {
    return this.#closed
  }

  /** Who keeps it, for people. */
  get peer(): string {
    const { store, onTicket, whole } = this.#targets
    if (whole !== undefined) return whole.peer
    const isListener = this.#isTelling || store === undefined
    return isListener && onTicket !== undefined ? 'onTicket' : STORE
  }

  /** What is wrong with it; undefined if nothing is. The writing of a part is explained by the whole ticket. */
  get why(): Omit<Why, 'ref'> | undefined {
    if (this.#failure === undefined || this.#targets.whole !== undefined) return this.waits.why
    return {
      code: 'ticket',
      text: this.#failure.message,
      hint: 'after a crash, what the ticket does not say is not known; check what keeps it',
    }
  }

  get #keptAt(): object | undefined {
    const { store, onTicket, whole } = this.#targets
    return whole ?? store ?? onTicket
  }

  /**
   * Writes the ticket as it is when the writing begins, which is at least what it is now; rejects where
   * the store or the callback could not, or did not answer.
   *
   * @param limit - milliseconds
   */
  async save(current: () => Ticket, limit: number): Promise<void> {
    if (this.#closed || this.#keptAt === undefined) return
    this.#newest = current
    const waiting = (this.#waiting ??= this.#begin(limit, current))
    waiting.limit = Math.max(waiting.limit, limit)
    await this.#answered('saved', limit, waiting.done)
  }

  /** Resolves when every writing that was asked for is over, however. */
  async written(): Promise<void> {
    await this.#writing.catch(() => undefined)
  }

  /** Another run of this process goes on with this ticket: what this one knows of it says nothing any more. */
  yield(): void {
    this.#yielded = true
    this.#closed = true
  }

  /**
   * Writes nothing any more and forgets the ticket in the store: nothing is left to undo.
   *
   * @param limit - milliseconds
   */
  async drop(limit: number): Promise<void> {
    this.#closed = true
    if (this.#keptAt === undefined) return
    const dropped = this.#enter((line) => this.#delete(line, limit))
    await this.#answered('deleted', limit, dropped)
  }

  #begin(limit: number, current: () => Ticket): Waiting {
    const waiting: Waiting = { limit, done: Promise.resolve() }
    waiting.done = this.#enter(async (line) => {
      this.#waiting = undefined
      if (!this.#closed) await this.#write(line, current(), waiting.limit)
      // The store is about to forget it. A listener can't, and keeps the last one it was given.
      else if (!this.#yielded && this.#targets.whole?.drop === undefined)
        await this.#tell(line, current(), waiting.limit)
    })
    return waiting
  }

  /** Waits for a writing, which may have to wait for earlier ones. */
  async #answered(verb: 'saved' | 'deleted', limit: number, done: Promise<void>): Promise<void> {
    try {
      await within(this.#bound({ clock: this.#clock, limit }), () => done)
      this.#failure = undefined
    } catch (cause) {
      this.#failure = notKept(verb, cause)
      throw cause
    }
  }

  #bound(asked: Asked): Bound {
    const peer = (): string => this.peer
    const { whole } = this.#targets
    if (whole !== undefined) return { ...storeBound(asked), peer }
    return { ...storeBound(asked), peer, waiting: () => this.waits.begin('ticket', peer) }
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

  async #delete(line: TicketLine, limit: number): Promise<void> {
    const { store, whole } = this.#targets
    if (this.#yielded) return
    const lease = this.#newest?.().lease ?? this.#lease
    this.#follow(line)
    if (whole !== undefined) await whole.drop?.(limit)
    else if (store !== undefined)
      await dropTicket(store, this.#id, { clock: this.#clock, limit }, lease)
  }

  async #write(line: TicketLine, ticket: Ticket, limit: number): Promise<void> {
    const { store } = this.#targets
    this.#follow(line)
    const until = this.#clock.now() + limit
    if (store !== undefined) await saveTicket(store, ticket, { clock: this.#clock, limit })
    await this.#tell(line, ticket, until - this.#clock.now())
  }

  async #tell(line: TicketLine, ticket: Ticket, limit: number): Promise<void> {
    const { onTicket, whole } = this.#targets
    if (whole !== undefined) await whole.save(ticket, limit)
    if (onTicket === undefined || whole !== undefined) return
    this.#isTelling = true
    try {
      await within(this.#bound({ clock: this.#clock, limit }), (signal) =>
        line.change(
          () => onTicket(ticket),
          (ending) => abortable(ending, signal),
        ),
      )
    } finally {
      this.#isTelling = false
    }
  }

  /** What is there at last is this one's doing, until another one begins. */
  #follow(line: TicketLine): void {
    const again = (): void => this.#mend(again)
    line.begin(again)
  }

  /**
   * A change that was given up has ended, perhaps after a later one: what is to be there is written once more, unless
   * anything has begun since. That was asked for before, and may have been a drop.
   */
  #mend(again: () => void): void {
    if (this.#yielded) return
    void this.#enter(async (line) => {
      const newest = this.#newest
      if (line.again !== again) return
      if (this.#closed) await this.#delete(line, LATER_ANSWER)
      else if (newest !== undefined) await this.#write(line, newest(), LATER_ANSWER)
    })
  }
}

/** What a ticket says of the drain as a whole. */
export type TicketHead = Pick<
  Ticket,
  'id' | 'instance' | 'parts' | 'startedAt' | 'deadline' | 'policy' | 'owner' | 'lease'
>

/** The ticket of one run, and its writing. */
export class TicketKeeper extends TicketWriter {
  readonly head: TicketHead
  readonly #clock: Clock

  /** @param lease - under which the ticket was written that this run goes on with */
  constructor(head: TicketHead, targets: TicketTargets, clock: Clock, lease?: Ticket['lease']) {
    super(head.id, targets, clock, head.lease ?? lease)
    this.head = head
    this.#clock = clock
  }

  /** The ticket as of now. */
  ticket(claimedMembers: Iterable<ClaimedMember>): Ticket {
    const offset = wallOf(this.#clock) - this.#clock.now()
    return {
      v: 1,
      ...this.head,
      members: [...claimedMembers].map((claimed) => toTicketMember(claimed, offset)),
    }
  }

  /** See {@link TicketWriter.save}. */
  saveMembers(claimedMembers: () => Iterable<ClaimedMember>, limit: number): Promise<void> {
    return this.save(() => this.ticket(claimedMembers()), limit)
  }
}
