/**
 * Where tickets are kept: Keyv as it is, unstorage through `fromUnstorage`, or `fileTickets`.
 *
 * What `set` has stored is seen by every `get` that begins afterwards, in whatever process, and stays
 * until it is deleted. A time to live loses tickets, and a store that is only eventually consistent
 * can miss them in a list. Give tickets a folder, namespace or prefix of their own.
 */
export interface TicketStore {
  /** What was stored under the key; `undefined` or null when there is nothing. */
  get(k: string): Promise<unknown>
  /** Stores plain JSON. Every ticket is read back, so a store that fails without a throw is noticed. */
  set(k: string, v: unknown): Promise<unknown>
  /** Forgets the key; no error when it is not there. */
  delete(k: string): Promise<unknown>
  /**
   * Every key that something is stored under, by whatever process; other keys do no harm.
   *
   * Without it Keyv's `iterator` is asked. A ticket that neither of them shows once it is written is
   * listed under keys of our own: they begin with `drainable=`, which no ticket's id can.
   */
  keys?(): Iterable<string> | AsyncIterable<string> | Promise<Iterable<string>>
}

const TICKET_ID = /^[\w.:@-]{1,200}$/

/** Whether a key can be the id of a ticket. Keys of our own hold a `=`, so they never can. */
export function isTicketId(key: string): boolean {
  return TICKET_ID.test(key)
}

/** A value as it was given to the store: some give its JSON text back. `undefined` where that is damaged. */
export function parseStored(value: unknown): unknown {
  if (typeof value !== 'string') return value
  try {
    return JSON.parse(value) as unknown
  } catch {
    return undefined
  }
}
