import type { Waits } from '../../provider/abort.js'
import type { Clock } from '../../provider/clock.js'
import type { DrainableProvider } from '../../provider/contract.js'
import { DrainableError } from '../../provider/error.js'
import type { Why } from '../../provider/report.js'
import type { Asked } from '../../core/tickets/calls.js'
import { keptTicket } from '../../core/tickets/read-tickets.js'
import {
  TicketWriter,
  type TicketTargets,
  type WholeTicket,
} from '../../core/tickets/writing/writer.js'
import type { Ticket } from '../../core/tickets/ticket.js'
import { balancerOf } from '../../core/balancer/balancer.js'
import { Run } from '../../core/calls/run/run.js'
import type { Prepared } from '../../core/calls/run/run-spec.js'
import type { Target } from '../../core/calls/target.js'
import type { ClaimedMember } from '../../core/member/claimed.js'
import { emptyLedger, newClaim, NO_FACTS } from '../../core/member/record.js'
import type { Parts } from '../../core/combined.js'
import { bareRef, tagRef } from './tag.js'

/** The part of a ticket that is one balancer's, as a ticket of that balancer alone. */
export function sliceTicket(ticket: Ticket, key: string, provider: DrainableProvider): Ticket {
  const { name, instance } = provider
  return {
    ...ticket,
    instance,
    parts: [{ balancer: null, name, instance }],
    members: ticket.members
      .filter(({ ref }) => ref.balancer === key)
      .map((member) => ({ ...member, ref: bareRef(member.ref) })),
  }
}

/** What each balancer is pointed at that was not read yet. */
export function unreadIn({ parts }: Ticket): ReadonlyMap<string, Target> {
  return new Map(
    parts.flatMap(({ balancer, target }): [string, Target][] =>
      balancer === null || target === undefined ? [] : [[balancer, target]],
    ),
  )
}

/** What each balancer's own ticket says, as one; those that were not read yet have a target in their place. */
export function joinTickets(
  head: Partial<Ticket>,
  tickets: ReadonlyMap<string, Ticket>,
  waiting: ReadonlyMap<string, Target>,
  { all }: Parts,
): Ticket {
  const [first] = tickets.values()
  if (first === undefined)
    throw new DrainableError('TICKET_INVALID', 'the ticket names no balancer')
  const keys = [...all.keys()].filter((key) => tickets.has(key) || waiting.has(key))
  return {
    ...first,
    ...head,
    parts: keys.map((key) => {
      const { name = '', instance = '' } = all.get(key) ?? {}
      const target = tickets.has(key) ? undefined : waiting.get(key)
      return { balancer: key, name, instance, ...(target === undefined ? {} : { target }) }
    }),
    members: keys.flatMap((key) =>
      (tickets.get(key)?.members ?? []).map((member) => ({
        ...member,
        ref: tagRef(member.ref, key),
      })),
    ),
  }
}

/** What {@link SharedTicket} is made of. */
export interface SharedTicketOptions extends TicketTargets {
  readonly id: string
  /** The combined provider. */
  readonly provider: DrainableProvider
  readonly parts: Parts
  readonly clock: Clock
  readonly waits?: Waits
}

/** One ticket of a drain over several balancers. Each part writes its own here, and the whole goes to the caller's store. */
export class SharedTicket {
  readonly #options: SharedTicketOptions
  readonly #known = new Map<string, Ticket>()
  /** What each balancer was pointed at that was not read yet. */
  readonly #waiting = new Map<string, Target>()
  readonly #dropped = new Set<string>()
  readonly #writer: TicketWriter

  constructor(options: SharedTicketOptions) {
    this.#options = options
    const { id, clock, waits } = options
    this.#writer = new TicketWriter(id, options, clock, undefined, waits)
  }

  /** See {@link TicketWriter.why}. */
  get why(): Omit<Why, 'ref'> | undefined {
    return this.#writer.why
  }

  /** These were pointed at something and are not read yet. */
  awaits(targets: ReadonlyMap<string, Target>): void {
    for (const [key, target] of targets) if (!this.#known.has(key)) this.#waiting.set(key, target)
  }

  /** What an earlier ticket has of a part. */
  seed(key: string, ticket: Ticket): void {
    this.#known.set(key, ticket)
    this.#waiting.delete(key)
  }

  /** A part is prepared, and has changed nothing yet. */
  prepared(key: string, { keeper, claims }: Prepared): void {
    if (keeper !== undefined && !this.#known.has(key))
      this.seed(key, keeper.ticket(claims.map(unseen)))
  }

  /** A part has nothing to do. */
  without(key: string): void {
    this.#waiting.delete(key)
  }

  /** Where one part keeps its ticket; undefined if it is kept nowhere. */
  part(key: string, provider: DrainableProvider): WholeTicket | undefined {
    const writer = this.#writer
    if (!writer.kept) return undefined
    return {
      get peer() {
        return writer.peer
      },
      earlier: async (asked) =>
        this.#known.get(key) ??
        this.#living(provider) ??
        (await this.#stored(asked, key, provider)),
      save: async (ticket, limit) => {
        this.#known.set(key, ticket)
        this.#waiting.delete(key)
        this.#dropped.delete(key)
        await writer.save(() => this.join(), limit)
      },
      drop: async (limit) => {
        this.#dropped.add(key)
        const isLast = [...this.#known.keys()].every((each) => this.#dropped.has(each))
        if (isLast && this.#waiting.size === 0) await writer.drop(limit)
        else await writer.save(() => this.join(), limit)
      },
    }
  }

  /** The ticket as of now. */
  join(tickets: ReadonlyMap<string, Ticket> = this.#known): Ticket {
    const { id, provider, parts } = this.#options
    return joinTickets({ id, instance: provider.instance }, tickets, this.#waiting, parts)
  }

  /**
   * What a call of this process that goes on under this id has of a part: it may have begun there since the ticket was kept that
   * says that this part was not read yet.
   */
  #living(provider: DrainableProvider): Ticket | undefined {
    const { id, clock } = this.#options
    const living = balancerOf(provider, clock).writers.of(id)
    return living instanceof Run ? living.ticketNow() : undefined
  }

  /** An earlier ticket of the same id: what it still owes is taken over, part by part. */
  async #stored(
    asked: Asked,
    key: string,
    provider: DrainableProvider,
  ): Promise<Ticket | undefined> {
    const { store, id } = this.#options
    const kept = store && (await keptTicket(store, id, asked))
    return kept && sliceTicket(kept, key, provider)
  }
}

/** A member of a drain that is prepared, before anything is known or changed. */
function unseen({ ref, start, left }: Prepared['claims'][number]): ClaimedMember {
  const ledger = left?.ledger ?? emptyLedger(start.startedAt)
  const claim = newClaim({ ...start, id: 0, view: 0 })
  return { ref, facts: NO_FACTS, ledger, claim, elsewhere: [] }
}
