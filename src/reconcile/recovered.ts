import { parseTicket, belongsTo, type Ticket } from '../core/tickets/ticket.js'
import type { Asked } from '../core/tickets/calls.js'
import { storedTickets } from '../core/tickets/saved.js'
import type { TicketStore } from '../core/tickets/store.js'
import type { DrainableProvider } from '../provider/contract.js'
import { refKey } from '../provider/member-ref.js'
import { TICKET_PREFIX } from './ticket-id.js'

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
  unreadable: (id: string, error: unknown) => void,
): Promise<Map<string, Ticket>> {
  const found = new Map<string, Ticket>()
  const named = new Set(pools)
  for (const { id, value } of await storedTickets(store, asked)) {
    if (!id.startsWith(TICKET_PREFIX)) continue
    let ticket: Ticket
    try {
      ticket = parseTicket(value, `ticket '${id}'`)
    } catch (error) {
      unreadable(id, error)
      continue
    }
    const [member, ...more] = ticket.members
    if (member === undefined || more.length > 0 || !belongsTo(ticket, provider)) continue
    if (named.has(member.ref.pool)) found.set(refKey(member.ref), ticket)
  }
  return found
}
