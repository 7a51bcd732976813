import { DrainableError } from '../../provider/error.js'
import { missingMethods } from '../../provider/options.js'
import type { TicketStore } from './store.js'
import { keptIn } from './writing/place.js'

const VERBS = ['getItem', 'setItem', 'removeItem']

/** The part of unstorage's `Storage` that tickets need. */
export interface UnstorageLike {
  /** What was stored under the key, or null. */
  getItem(k: string): Promise<unknown>
  /** Stores plain JSON. */
  setItem(k: string, v: never): Promise<unknown>
  /** Forgets the key. */
  removeItem(k: string): Promise<unknown>
  /** All keys. Every `Storage` has it; without it tickets are listed under keys of our own. */
  getKeys?(): Promise<readonly string[]>
}

/**
 * An unstorage `Storage` as a ticket store. A `:` in an id is kept as `~`: unstorage takes it for a
 * folder, so that `a:`, `:a` and `a` would be one key, and files `a` and `a:b` can't both be.
 *
 * @param storage - a storage, or `prefixStorage(storage, 'tickets')` where it holds other things as well
 * @throws `INVALID_OPTIONS`
 *
 * @example
 * ```ts
 * import { drain, fromUnstorage, type DrainableProvider, type UnstorageLike } from 'drainable'
 *
 * export async function deploy(lb: DrainableProvider, storage: UnstorageLike): Promise<void> {
 *   const tickets = fromUnstorage(storage) // createStorage({ driver: redisDriver({ url }) })
 *   await drain(lb, { pool: 'web', member: 'web1' }, { tickets, id: 'deploy-web1' })
 * }
 * ```
 */
export function fromUnstorage(storage: UnstorageLike): TicketStore {
  const missing = missingMethods(storage, VERBS)
  if (missing.length > 0) {
    const words = `fromUnstorage(): storage: expected a storage of unstorage, found none with ${missing.join(', ')}`
    throw new DrainableError('INVALID_OPTIONS', words)
  }
  const store: TicketStore = {
    get: (key) => storage.getItem(toItemKey(key)),
    set: async (key, value) => {
      await storage.setItem(toItemKey(key), value as never)
      return true
    },
    delete: (key) => storage.removeItem(toItemKey(key)),
    ...(storage.getKeys === undefined
      ? {}
      : { keys: async () => ((await storage.getKeys?.()) ?? []).filter(isOurs).map(toKey) }),
  }
  return keptIn(store, storage)
}

function toItemKey(key: string): string {
  return key.replaceAll(':', '~')
}

function toKey(itemKey: string): string {
  return itemKey.replaceAll('~', ':')
}

/** What is stored through us has no folder. */
function isOurs(itemKey: string): boolean {
  return !itemKey.includes(':')
}
