import { DrainableError } from '../../provider/error.js'
import type { Asked } from '../../core/tickets/calls.js'
import { keptTicket } from '../../core/tickets/read-tickets.js'
import type { TicketStore } from '../../core/tickets/store.js'
import type { RollData, Ticket } from '../../core/tickets/ticket.js'

/**
 * Reads the roll's newest ticket from the store. The process that held the lease may have continued since the ticket
 * was read: its finished work must not be repeated.
 *
 * @throws `CONFLICT` if the store no longer has the ticket; `TICKET_INVALID`
 */
export async function newestRoll(
  store: TicketStore | undefined,
  asked: Asked,
  { id }: Ticket,
  given: RollData,
  subject: string,
): Promise<RollData> {
  if (store === undefined) return given
  const kept = await keptTicket(store, id, asked, `${subject}: ticket '${id}'`)
  if (kept === undefined)
    throw new DrainableError(
      'CONFLICT',
      `${subject}: ticket '${id}' is no longer in the store, so this roll has ended since the ticket was read; if it was read from another store, give that one`,
      { retryable: false },
    )
  if (kept.roll === undefined)
    throw new DrainableError('TICKET_INVALID', `${subject}: ticket '${id}' belongs to a drain now`)
  return kept.roll
}
