/** The calls of a store as a test makes them: with the real clock, and time enough. */
import type { Ticket, TicketStore } from 'drainable'
import { systemClock } from 'drainable/provider'
import * as saved from '../../../src/core/tickets/saved.js'

const asked = { clock: systemClock, limit: 30_000 }

export function saveTicket(store: TicketStore, ticket: Ticket): Promise<void> {
  return saved.saveTicket(store, ticket, asked)
}

export function dropTicket(store: TicketStore, id: string): Promise<void> {
  return saved.dropTicket(store, id, asked)
}

export async function listTickets(store: TicketStore): Promise<readonly string[]> {
  return (await saved.storedTickets(store, asked)).map(({ id }) => id)
}
