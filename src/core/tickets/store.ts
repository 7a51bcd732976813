import * as z from 'zod/mini'
import { isPromise, missingMethods, once, parseOptions } from '../../provider/options.js'

/**
 * A store for tickets: Keyv as it is, unstorage through `fromUnstorage`, or `fileTickets`.
 *
 * Every `get` that begins after a `set`, in any process, must see what it stored, until the key is deleted. A time to
 * live loses tickets, and an eventually consistent store can miss them in a list. Give tickets their own folder,
 * namespace or prefix.
 */
export interface TicketStore {
  /** Returns the value stored under the key; `undefined` or null if there is none. */
  get(k: string): Promise<unknown>
  /** Stores plain JSON. Every ticket is read back, to detect a store that fails without a throw. */
  set(k: string, v: unknown): Promise<unknown>
  /** Deletes the key; no error if it is not there. */
  delete(k: string): Promise<unknown>
  /**
   * Lists every stored key, from any process; keys that are not tickets do no harm.
   *
   * Without it, Keyv's `iterator` is used. A store with neither keeps tickets, but `findOrphans`, `heldMembers` and
   * `reconcile` refuse it as `UNSUPPORTED`.
   */
  keys?(): Iterable<string> | AsyncIterable<string> | Promise<Iterable<string>>
}

const TICKET_ID = /^[\w.:@-]{1,200}$/

/** Whether a key can be the id of a ticket. */
export function isTicketId(key: string): boolean {
  return TICKET_ID.test(key)
}

/**
 * Returns a value as it was given to the store: some stores return its JSON text. `undefined` if the text is damaged.
 */
export function parseStored(value: unknown): unknown {
  if (typeof value !== 'string') return value
  try {
    return JSON.parse(value) as unknown
  } catch {
    return undefined
  }
}

/** A schema for a ticket store. */
export const storeSchema = once(() =>
  z
    .custom<TicketStore>((value) => missingMethods(value, ['get', 'set', 'delete']).length === 0, {
      error: ({ input }) =>
        isPromise(input)
          ? 'found a promise; await it first'
          : `expected a store with get, set and delete${typeof input === 'string' ? ', such as fileTickets(path)' : ''}`,
    })
    .check(
      z.refine(
        (store) => store.keys === undefined || missingMethods(store, ['keys']).length === 0,
        {
          path: ['keys'],
          message: 'expected a function that lists the keys, or none',
        },
      ),
    ),
)

/**
 * Checks that a value is a ticket store.
 *
 * @throws `INVALID_OPTIONS`
 */
export function checkStore(value: unknown, subject: string): TicketStore {
  return parseOptions(z.strictObject({ store: storeSchema() }), { store: value }, subject).store
}
