import * as z from 'zod/mini'
import { isPromise, missingMethods, once, parseOptions } from '../../provider/options.js'
import type { TicketStore } from './store.js'

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
