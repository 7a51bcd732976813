import { randomUUID } from 'node:crypto'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { DrainableError } from '../provider/error.js'
import type { Ticket, TicketStore } from './ticket.js'

/** The key under which the ids of all tickets are listed, because a store can't be asked for its keys. */
export const TICKET_INDEX = 'drainable.index'

const FILE_KEY = /^[\w.:@-]{1,200}$/

/**
 * A ticket store of files: one JSON file a ticket in `path`, readable by the owner only (0600), each
 * written whole or not at all. The folder is made when it is needed.
 *
 * @param path - folder, such as `/var/lib/drain`
 */
export function fileTickets(path: string): TicketStore {
  if (typeof path !== 'string' || path.length === 0) {
    throw new DrainableError(
      'INVALID_OPTIONS',
      'fileTickets(): path: expected the path of a folder',
    )
  }
  const file = (key: string): string => {
    if (FILE_KEY.test(key) && !key.startsWith('.')) return join(path, `${key}.json`)
    throw new DrainableError(
      'TICKET_INVALID',
      `'${key}' can't be a ticket's id: expected letters, digits or _ . : @ -`,
    )
  }
  return {
    async get(key) {
      const name = file(key)
      let text: string
      try {
        text = await readFile(name, 'utf8')
      } catch (cause) {
        if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined
        throw cause
      }
      try {
        return JSON.parse(text) as unknown
      } catch (cause) {
        throw new DrainableError(
          'TICKET_INVALID',
          `${name} is not JSON, remove it if it is none of ours`,
          { cause },
        )
      }
    },
    async set(key, value) {
      const name = file(key)
      await mkdir(path, { recursive: true, mode: 0o700 })
      const temporary = `${name}.${randomUUID()}.tmp`
      try {
        await writeFile(temporary, JSON.stringify(value), { mode: 0o600, flush: true })
        await rename(temporary, name)
      } catch (error) {
        await rm(temporary, { force: true })
        throw error
      }
      return true
    },
    async delete(key) {
      await rm(file(key), { force: true })
      return true
    },
  }
}

/** The part of unstorage's `Storage` that tickets need. */
export interface UnstorageLike {
  /** What was stored under the key, or null. */
  getItem(k: string): Promise<unknown>
  /** Stores plain JSON. */
  setItem(k: string, v: never): Promise<unknown>
  /** Forgets the key. */
  removeItem(k: string): Promise<unknown>
}

/** An unstorage `Storage` as a ticket store. */
export function fromUnstorage(s: UnstorageLike): TicketStore {
  return {
    get: (key) => s.getItem(key),
    set: async (key, value) => {
      await s.setItem(key, value as never)
      return true
    },
    delete: (key) => s.removeItem(key),
  }
}

/**
 * Writes a ticket and reads it back: some stores report a failed write by nothing at all.
 *
 * @throws what the store threw, or `TICKET_INVALID` where it did not keep what it was given
 */
export async function saveTicket(store: TicketStore, ticket: Ticket): Promise<void> {
  const plain: unknown = JSON.parse(JSON.stringify(ticket))
  await store.set(ticket.id, plain)
  const kept = await store.get(ticket.id)
  if (!isDeepStrictEqual(typeof kept === 'string' ? JSON.parse(kept) : kept, plain)) {
    throw new DrainableError(
      'TICKET_INVALID',
      `the ticket store did not keep ticket '${ticket.id}', check that it can write`,
    )
  }
}

/** Writers of one store in this process take turns: the index is read, changed and written. */
const turns = new WeakMap<TicketStore, Promise<unknown>>()

async function changeIndex(
  store: TicketStore,
  change: (ids: readonly string[]) => readonly string[],
): Promise<void> {
  const before = turns.get(store) ?? Promise.resolve()
  const turn = before
    .catch(() => undefined)
    .then(async () => {
      const ids = await listTickets(store)
      const next = change(ids)
      if (next !== ids) await store.set(TICKET_INDEX, next)
    })
  turns.set(store, turn)
  await turn
}

/** Lists a ticket in the index. */
export function indexTicket(store: TicketStore, id: string): Promise<void> {
  return changeIndex(store, (ids) => (ids.includes(id) ? ids : [...ids, id]))
}

/** Forgets a ticket: it was undone, or its member is gone. */
export async function dropTicket(store: TicketStore, id: string): Promise<void> {
  await store.delete(id)
  await changeIndex(store, (ids) => (ids.includes(id) ? ids.filter((known) => known !== id) : ids))
}

/** Ids of all tickets in the store. */
export async function listTickets(store: TicketStore): Promise<readonly string[]> {
  const value = await store.get(TICKET_INDEX)
  const list: unknown = typeof value === 'string' ? JSON.parse(value) : value
  return Array.isArray(list) ? list.filter((id) => typeof id === 'string') : []
}
