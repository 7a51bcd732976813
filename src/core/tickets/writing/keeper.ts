import { wallOf, type Clock } from '../../../provider/clock.js'
import type { Why } from '../../../provider/report.js'
import type { Waits } from '../../../provider/abort.js'
import type { Sight } from '../../member/sight.js'
import { toTicketMember } from '../member.js'
import type { Ticket } from '../ticket.js'
import { TicketWriter, type TicketTargets } from './writer.js'

/** What a ticket says of the drain as a whole. */
export type TicketHead = Pick<
  Ticket,
  'id' | 'instance' | 'parts' | 'startedAt' | 'deadline' | 'policy' | 'owner' | 'lease'
>

/** The ticket of one run, and its writing. */
export class TicketKeeper {
  readonly head: TicketHead
  readonly #writer: TicketWriter
  readonly #clock: Clock

  /** @param lease - under which the ticket was written that this run goes on with */
  constructor(head: TicketHead, targets: TicketTargets, clock: Clock, lease?: Ticket['lease']) {
    this.head = head
    this.#writer = new TicketWriter(head.id, targets, clock, head.lease ?? lease)
    this.#clock = clock
  }

  /** Whether the ticket is kept anywhere. */
  get kept(): boolean {
    return this.#writer.kept
  }

  /** See {@link TicketWriter.closed}. */
  get closed(): boolean {
    return this.#writer.closed
  }

  /** See {@link TicketWriter.why}. */
  get why(): Omit<Why, 'ref'> | undefined {
    return this.#writer.why
  }

  /** What of the ticket's store has no answer yet. */
  get waits(): Waits {
    return this.#writer.waits
  }

  /** The ticket as of now. */
  ticket(sights: Iterable<Sight>): Ticket {
    const offset = wallOf(this.#clock) - this.#clock.now()
    return {
      v: 1,
      ...this.head,
      members: [...sights].map((sight) => toTicketMember(sight, offset)),
    }
  }

  /** See {@link TicketWriter.save}. */
  save(sights: () => Iterable<Sight>, limit: number): Promise<void> {
    return this.#writer.save(() => this.ticket(sights()), limit)
  }

  /** See {@link TicketWriter.written}. */
  written(): Promise<void> {
    return this.#writer.written()
  }

  /** See {@link TicketWriter.yield}. */
  yield(): void {
    this.#writer.yield()
  }

  /** See {@link TicketWriter.takeUp}. */
  takeUp(): void {
    this.#writer.takeUp()
  }

  /** See {@link TicketWriter.handOver}. */
  handOver(): Promise<void> {
    return this.#writer.handOver()
  }

  /** See {@link TicketWriter.drop}. */
  drop(limit: number): Promise<void> {
    return this.#writer.drop(limit)
  }
}
