import { isDamaged, type StoreCalls } from './calls.js'
import { isTicketId, parseStored } from './store.js'

/**
 * Ids that a store lists by itself, some of them perhaps of other things; `undefined` where it lists nothing. Keyv 5 has no
 * iterator where its adapter has none; that of Keyv 6 is always there, and yields nothing then.
 */
export function listing(calls: StoreCalls): AsyncIterable<string> | undefined {
  const list = calls.list()
  if (list === undefined) return undefined
  return 'keys' in list ? fromKeys(list.keys) : fromEntries(list.entries)
}

async function* fromKeys(keys: AsyncIterable<string>): AsyncGenerator<string, void, undefined> {
  for await (const key of keys) if (isTicketId(key)) yield key
}

/**
 * The ticket's own word for its id is taken, where it can be read: Keyv 5 cuts every key at its first
 * `:`, with or without a namespace in front.
 */
async function* fromEntries(
  entries: AsyncIterable<unknown>,
): AsyncGenerator<string, void, undefined> {
  for await (const entry of entries) {
    const [key, value] = Array.isArray(entry) ? (entry as unknown[]) : []
    const id = typeof key === 'string' ? idIn(key, value) : undefined
    if (id !== undefined && isTicketId(id)) yield id
  }
}

/**
 * The id of the ticket that is stored under a key, or the key where it can't be read; `undefined` for
 * nothing and for other things.
 *
 * @throws what the store threw
 */
export async function ticketAt(
  calls: Pick<StoreCalls, 'get'>,
  key: string,
): Promise<string | undefined> {
  return (await readTicket(calls, key))?.id
}

/**
 * The ticket that is stored under a key: its own word for its id, or the key where it can't be read.
 * `undefined` for nothing and for other things.
 *
 * @throws what the store threw
 */
export async function readTicket(
  calls: Pick<StoreCalls, 'get'>,
  key: string,
): Promise<{ readonly id: string; readonly value: unknown } | undefined> {
  let stored: unknown
  try {
    stored = await calls.get(key)
  } catch (error) {
    if (isDamaged(error)) return { id: key, value: undefined }
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
