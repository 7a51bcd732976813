import { LATER_ANSWER, type Asked } from '../core/tickets/calls.js'
import { storedTickets } from '../core/tickets/saved.js'
import type { TicketStore } from '../core/tickets/store.js'
import { belongsTo, parseTicket, type Ticket } from '../core/tickets/ticket.js'
import { TicketWriter } from '../core/tickets/writing/writer.js'
import { nodeCrypto } from '../provider/builtins.js'
import type { DrainableProvider, MemberRef } from '../provider/contract.js'
import { toDrainableError } from '../provider/error.js'
import { refKey } from '../provider/member-ref.js'
import type { WorkSpec } from './work-spec.js'

/** What the ticket of a reconciler's drain begins with. */
export const TICKET_PREFIX = 'reconcile:'

/** One ticket for each member, whichever process writes it: the next controller finds what the last one held. */
export function ticketId({ name, instance }: DrainableProvider, ref: MemberRef): string {
  const text = JSON.stringify([name, instance, ref.pool, ref.member])
  return `${TICKET_PREFIX}${digest(text)}`
}

/** Where the members are listed that we have added to a pool. No ticket's id holds a `=`. */
export function additionsKey({ name, instance }: DrainableProvider, pool: string): string {
  const text = JSON.stringify([name, instance, pool])
  return `drainable=added=${digest(text)}`
}

function digest(text: string): string {
  return nodeCrypto().createHash('sha256').update(text).digest('hex').slice(0, 32)
}

/**
 * What an earlier controller has left, by member: this process before, or another one. Only tickets of this
 * balancer and of these pools; one that can't be read is told, and stays.
 *
 * @throws what the store threw
 */
export async function recoverTickets(
  store: TicketStore,
  provider: DrainableProvider,
  pools: readonly string[],
  asked: Asked,
  unreadable: (error: unknown) => void,
): Promise<Map<string, Ticket>> {
  const found = new Map<string, Ticket>()
  const named = new Set(pools)
  for (const { id, value } of await storedTickets(store, asked)) {
    if (!id.startsWith(TICKET_PREFIX)) continue
    let ticket: Ticket
    try {
      ticket = parseTicket(value, `ticket '${id}'`)
    } catch (error) {
      unreadable(error)
      continue
    }
    const [member, ...more] = ticket.members
    if (member === undefined || more.length > 0 || !belongsTo(ticket, provider)) continue
    if (named.has(member.ref.pool)) found.set(refKey(member.ref), ticket)
  }
  return found
}

/** Drops the ticket of a member of which nothing is left, unless a later holder of the lease wrote it; a failure is told. */
export async function dropTicket(
  ref: MemberRef,
  { tickets, provider, policy, subject, fault }: WorkSpec,
): Promise<void> {
  try {
    const id = ticketId(provider, ref)
    const lease = policy.term?.mark
    await new TicketWriter(id, { store: tickets }, policy.clock, lease).drop(LATER_ANSWER)
  } catch (thrown) {
    fault(toDrainableError(thrown, provider.name, subject))
  }
}

/**
 * Tickets for as long as the process lives, where the caller gave no store: a drain that is begun anew, with
 * another level or for a removal, has to know what the one before it changed.
 */
export function memoryTickets(): TicketStore {
  const kept = new Map<string, unknown>()
  return {
    get: (key) => Promise.resolve(kept.get(key)),
    set: (key, value) => Promise.resolve(void kept.set(key, value)),
    delete: (key) => Promise.resolve(void kept.delete(key)),
    keys: () => kept.keys(),
  }
}
