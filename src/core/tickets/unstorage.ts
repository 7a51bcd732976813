import { DrainableError } from '../../provider/error.js'
import { missingMethods, readGiven } from '../../provider/options.js'
import type { TicketStore } from './store.js'
import { keptIn } from './writing/line.js'

const VERBS = ['getItem', 'setItem', 'removeItem']

/** The part of unstorage's `Storage` that tickets need. */
export interface UnstorageLike {
  /** Returns the value stored under the key, or null. */
  getItem(k: string): Promise<unknown>
  /** Stores plain JSON. */
  setItem(k: string, v: never): Promise<unknown>
  /** Deletes the key. */
  removeItem(k: string): Promise<unknown>
  /** Lists all keys. Every `Storage` has it; without it, `findOrphans`, `heldMembers` and `reconcile` refuse the store. */
  getKeys?(): Promise<readonly string[]>
}

/**
 * Makes a ticket store from an unstorage `Storage`. A `:` in an id is stored as `~`: unstorage takes `:` for a
 * folder, so `a:`, `:a` and `a` would be one key, and the files `a` and `a:b` could not both exist.
 *
 * @param storage - a storage, or `prefixStorage(storage, 'tickets')` if it holds other things as well
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
  const what = 'fromUnstorage(): storage'
  const missing = readGiven(what, () => missingMethods(storage, VERBS))
  if (missing.length > 0) {
    const words = `fromUnstorage(): storage: expected an unstorage Storage, found one without ${missing.join(', ')}`
    throw new DrainableError('INVALID_OPTIONS', words)
  }
  if (storage.getKeys !== undefined && typeof (storage.getKeys as unknown) !== 'function') {
    const words = 'fromUnstorage(): storage: getKeys: expected a function that lists the keys'
    throw new DrainableError('INVALID_OPTIONS', words)
  }
  const store: TicketStore = {
    get: (key) => storage.getItem(toItemKey(key)),
    set: async (key, value) => {
      await storage.setItem(toItemKey(key), value as never)
      return true
    },
    delete: (key) => storage.removeItem(toItemKey(key)),
    ...(storage.getKeys === undefined ? {} : { keys: () => keysOf(storage) }),
  }
  return keptIn(store, storage)
}

/** What is no list is refused by whoever asks a store. */
async function keysOf(storage: UnstorageLike): Promise<readonly string[]> {
  const listed: readonly string[] | undefined = await storage.getKeys?.()
  return Array.isArray(listed) ? listed.filter(isOurs).map(toKey) : (listed as never)
}

function toItemKey(key: string): string {
  return key.replaceAll(':', '~')
}

function toKey(itemKey: string): string {
  return itemKey.replaceAll('~', ':')
}

/** Our own keys are not in a folder. */
function isOurs(itemKey: string): boolean {
  return !itemKey.includes(':')
}
