import type { Ticket, TicketStore } from 'drainable'
import { TicketWriter } from '../../../src/core/tickets/writing/writer.js'

/** More than a store may take for one answer. */
export const LONG = 31_000

/** A ticket, as far as a store can tell. */
export function ticket(n: number): Ticket {
  return { v: 1, id: 'job', startedAt: String(n) } as unknown as Ticket
}

/** Which of them a store in memory holds. */
export function startedAt(map: ReadonlyMap<string, unknown>): string | undefined {
  return (map.get('job') as Ticket | undefined)?.startedAt
}

export function writerFor(store: TicketStore): TicketWriter {
  return new TicketWriter('job', { store, onTicket: undefined })
}
