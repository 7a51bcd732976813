import { systemClock } from '../../provider/clock.js'
import { isDrainableError } from '../../provider/error.js'
import { isTicketId, parseStored, type TicketStore } from './store.js'

/** How long a store may take to show a ticket in its own list, in milliseconds: the drain waits for it. */
const SHOW_LIMIT = 1_000

/**
 * The part of Keyv 4 to 6 that tells what it holds. In Keyv 5 it is missing where the adapter has
 * none; in Keyv 6 it is always there, and yields nothing then.
 */
interface KeyvLike {
  readonly namespace?: string
  iterator?(namespace?: string): AsyncIterable<unknown>
}

/** Ids that a store lists by itself, some of them perhaps of other things; `undefined` where it lists nothing. */
export function listing(store: TicketStore): AsyncIterable<string> | undefined {
  if (typeof store.keys === 'function') return fromKeys(store as Required<TicketStore>)
  const keyv = store as KeyvLike
  return typeof keyv.iterator === 'function' ? fromIterator(keyv as Required<KeyvLike>) : undefined
}

async function* fromKeys(store: Required<TicketStore>): AsyncGenerator<string, void, undefined> {
  for await (const key of await store.keys()) if (isTicketId(key)) yield key
}

/**
 * The ticket's own word for its id is taken, where it can be read: Keyv 5 cuts every key at its first
 * `:`, with or without a namespace in front.
 */
async function* fromIterator(keyv: Required<KeyvLike>): AsyncGenerator<string, void, undefined> {
  for await (const entry of keyv.iterator(keyv.namespace)) {
    const [key, value] = Array.isArray(entry) ? (entry as unknown[]) : []
    const id = typeof key === 'string' ? idIn(key, value) : undefined
    if (id !== undefined && isTicketId(id)) yield id
  }
}

/**
 * Whether a ticket that was just written is in the store's own list. It need not be: an iterator of
 * Keyv 6 yields nothing where its adapter has none, `@keyv/redis` without a namespace leaves out keys with
 * `::`, and of unstorage's drivers vercel-runtime-cache lists nothing, cloudflare-r2 the first thousand.
 */
export async function shows(store: TicketStore, id: string): Promise<boolean> {
  const listed = listing(store)
  if (listed === undefined) return false
  let cancel: (() => void) | undefined
  let late = false
  const limit = new Promise<false>((resolve) => {
    cancel = systemClock.setTimeout(() => {
      late = true
      resolve(false)
    }, SHOW_LIMIT)
  })
  const look = async (): Promise<boolean> => {
    for await (const shown of listed) {
      if (shown === id) return true
      if (late) return false
    }
    return false
  }
  try {
    return await Promise.race([look().catch(() => false), limit])
  } finally {
    cancel?.()
  }
}

/** Whether a ticket is stored under that id. One that can't be read counts: its member may be drained. */
export async function holdsTicket(store: TicketStore, id: string): Promise<boolean> {
  return (await ticketAt(store, id)) === id
}

/**
 * The id of the ticket that is stored under a key, or the key where it can't be read; `undefined` for
 * nothing and for other things.
 *
 * @throws what the store threw
 */
export async function ticketAt(store: TicketStore, key: string): Promise<string | undefined> {
  return (await readTicket(store, key))?.id
}

/**
 * The ticket that is stored under a key: its own word for its id, or the key where it can't be read.
 * `undefined` for nothing and for other things.
 *
 * @throws what the store threw
 */
export async function readTicket(
  store: TicketStore,
  key: string,
): Promise<{ readonly id: string; readonly value: unknown } | undefined> {
  let stored: unknown
  try {
    stored = await store.get(key)
  } catch (error) {
    if (isDrainableError(error, 'TICKET_INVALID')) return { id: key, value: undefined }
    throw error
  }
  if (stored === undefined || stored === null) return undefined
  const id = idIn(key, stored)
  return id === undefined ? undefined : { id, value: parseStored(stored) }
}

/** The id of the ticket that a value is, or its key where it can't be read. `undefined` for other things. */
function idIn(key: string, value: unknown): string | undefined {
  const read = parseStored(value)
  if (read === undefined) return key
  if (typeof read !== 'object' || read === null || !('v' in read) || !('id' in read))
    return undefined
  return typeof read.id === 'string' ? read.id : undefined
}
