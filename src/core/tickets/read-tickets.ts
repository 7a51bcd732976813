import { DrainableError, isDrainableError } from '../../provider/error.js'
import { quote } from '../../provider/quote.js'
import { StoreCalls, type Asked } from './calls.js'
import { storedTickets } from './saved.js'
import { parseStored, type TicketStore } from './store.js'
import { parseTicket, type Ticket } from './ticket.js'

/** Takes a ticket that can't be read. */
export type OnUnreadable = (id: string, error: DrainableError) => void

/**
 * Every ticket of a store. One that is damaged must not hide the others, nor be lost among them.
 *
 * @throws `TICKET_INVALID` naming tickets that can't be read, unless `onUnreadable` takes them; what the store failed with
 */
export async function readTickets(
  store: TicketStore,
  asked: Asked,
  subject: string,
  onUnreadable: OnUnreadable | undefined,
): Promise<readonly Ticket[]> {
  const tickets: Ticket[] = []
  const damaged: { readonly id: string; readonly error: DrainableError }[] = []
  for (const { id, value } of await storedTickets(store, asked)) {
    try {
      tickets.push(parseTicket(value, `${subject}: ticket '${quote(id)}'`))
    } catch (error) {
      if (!isDrainableError(error)) throw error
      damaged.push({ id, error })
    }
  }
  if (onUnreadable !== undefined) for (const { id, error } of damaged) onUnreadable(id, error)
  else if (damaged.length > 0) {
    const ids = damaged.map(({ id }) => `'${quote(id)}'`).join(', ')
    throw new DrainableError(
      'TICKET_INVALID',
      `${subject}: the store holds ${damaged.length === 1 ? 'a ticket' : 'tickets'} that can't be read: ${ids}; remove entries that are not tickets, or pass onUnreadable to skip them`,
      { cause: damaged[0]?.error },
    )
  }
  return tickets
}

/**
 * The ticket that a store has under an id; undefined: none.
 *
 * @param subject - what the ticket is called in an error
 * @throws what the store threw, `TICKET_INVALID`
 */
export async function keptTicket(
  store: TicketStore,
  id: string,
  asked: Asked,
  subject = `ticket '${id}'`,
): Promise<Ticket | undefined> {
  const kept = await new StoreCalls(store, asked).get(id)
  if (kept === undefined || kept === null) return undefined
  const value = parseStored(kept)
  if (value !== undefined) return parseTicket(value, subject)
  throw new DrainableError(
    'TICKET_INVALID',
    `${subject}: what the store has is not JSON, remove it if it is none of ours`,
  )
}
