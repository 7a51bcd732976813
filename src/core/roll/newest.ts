import { DrainableError } from '../../provider/error.js'
import { keptTicket } from '../tickets/read-tickets.js'
import type { TicketStore } from '../tickets/store.js'
import type { RollData, Ticket } from '../tickets/ticket.js'

/**
 * What is still to be done, as the store has it. The process that had the lease may have gone on since the ticket was
 * read: what it did must not be done again.
 *
 * @throws `CONFLICT` where the store has no such ticket any more; `TICKET_INVALID`
 */
export async function newestRoll(
  store: TicketStore | undefined,
  { id }: Ticket,
  given: RollData,
  subject: string,
): Promise<RollData> {
  if (store === undefined) return given
  const kept = await keptTicket(store, id, `${subject}: ticket '${id}'`)
  if (kept === undefined)
    throw new DrainableError(
      'CONFLICT',
      `${subject}: ticket '${id}' is not in the store any more, so this roll has ended since it was read; where it was read from another store, give that one`,
      { retryable: false },
    )
  if (kept.roll === undefined)
    throw new DrainableError('TICKET_INVALID', `${subject}: ticket '${id}' is of a drain now`)
  return kept.roll
}
