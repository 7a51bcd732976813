import { nodeUtil } from '../../provider/builtins.js'
import { DrainableError } from '../../provider/error.js'
import { quote } from '../../provider/quote.js'
import { type Asked, askStore, canList, isDamaged, StoreCalls } from './calls.js'
import type { Ticket } from './ticket.js'
import { isTicketId, parseStored, type TicketStore } from './store.js'

/** The ids that this process has written to each store. */
const written = new WeakMap<TicketStore, Set<string>>()

function writtenTo(store: TicketStore): Set<string> {
  const ids = written.get(store) ?? new Set<string>()
  written.set(store, ids)
  return ids
}

/**
 * Writes a ticket and reads it back: some stores report a failed write by nothing at all.
 *
 * @throws what the store threw, or `TICKET_INVALID` where it did not answer or keep what it was given
 */
export async function saveTicket(store: TicketStore, ticket: Ticket, asked: Asked): Promise<void> {
  const { id } = ticket
  if (!isTicketId(id)) {
    throw new DrainableError(
      'TICKET_INVALID',
      `'${quote(id)}' can't be a ticket's id: expected 1 to 200 letters, digits or _ . : @ -`,
    )
  }
  const known = writtenTo(store)
  await askStore(store, asked, async (calls) => {
    if (!known.has(id)) await refuseOther(calls, id)
    if (ticket.lease !== undefined) {
      const end = ': that holder continues the drain'
      refuseOutdated(await leaseOf(calls, id), ticket.lease, `ticket '${id}'`, end)
    }
    await setChecked(calls, id, JSON.parse(JSON.stringify(ticket)), `ticket '${id}'`)
    known.add(id)
  })
}

/**
 * Writes a value of plain JSON and reads it back.
 *
 * @param what - it is, for people
 * @throws what the store threw, `TICKET_INVALID` where it did not keep it
 */
export async function setChecked(
  calls: StoreCalls,
  key: string,
  value: unknown,
  what: string,
): Promise<void> {
  await calls.set(key, value)
  if (nodeUtil().isDeepStrictEqual(parseStored(await calls.get(key)), value)) return
  throw new DrainableError(
    'TICKET_INVALID',
    `the ticket store did not keep ${what}, check that it can write`,
  )
}

/**
 * Writes over no ticket of another id: Keyv 5 takes `app:x` for `x` in its namespace `app`, and some
 * disks take `A` for `a`.
 */
async function refuseOther(calls: StoreCalls, id: string): Promise<void> {
  const other = await ticketAt(calls, id)
  if (other === undefined || other === id) return
  throw new DrainableError(
    'TICKET_INVALID',
    `the ticket store takes '${id}' and '${other}' for one key, give this drain another id`,
  )
}

/**
 * Forgets a ticket: it was undone, or its member is gone. One of a later holder of the lease that this one was
 * written under stays: it is of another drain, which goes on.
 *
 * @throws what the store threw
 */
export async function dropTicket(
  store: TicketStore,
  id: string,
  asked: Asked,
  lease?: Ticket['lease'],
): Promise<void> {
  if (!isTicketId(id)) return // it was never saved, and may be a key of our own
  await askStore(store, asked, async (calls) => {
    if (lease !== undefined && isLater(await leaseOf(calls, id), lease)) return
    await calls.delete(id)
    writtenTo(store).delete(id)
  })
}

/**
 * Nothing is written over what a later holder of the same lease has written: a process that was frozen beyond its own must
 * not take back what the next one has done.
 *
 * @param stored - the lease under which that was written which is stored now
 * @param what - is to be written, for people
 * @throws `NOT_LEADER`
 */
export function refuseOutdated(
  stored: Ticket['lease'],
  lease: NonNullable<Ticket['lease']>,
  what: string,
  end = '',
): void {
  if (!isLater(stored, lease)) return
  const fences = `${stored.fence}, we are ${lease.fence}`
  const words = `${what} was written by a later holder of the lease ${quote(lease.name)} (${fences})${end}`
  throw new DrainableError('NOT_LEADER', words)
}

function isLater(
  stored: Ticket['lease'],
  { name, fence }: NonNullable<Ticket['lease']>,
): stored is NonNullable<Ticket['lease']> {
  return stored?.name === name && stored.fence > fence
}

/** The lease under which the ticket was written that is stored. */
async function leaseOf(calls: StoreCalls, id: string): Promise<Ticket['lease']> {
  const stored = parseStored(await calls.get(id)) as Partial<Ticket> | null | undefined
  return stored?.lease
}

/** How many tickets are asked for at once. */
const READ_AT_ONCE = 16

/** One ticket as the store has it. */
export interface StoredTicket {
  readonly id: string
  /** What is stored; `undefined` where it can't be read. */
  readonly value: unknown
}

/**
 * All tickets in the store, sorted by id. One that can't be read is among them; other things are not. The limit is for each
 * call: a store may hold any number of tickets.
 *
 * @throws what the store threw, `TICKET_INVALID` where it did not answer, `UNSUPPORTED` where it lists nothing
 */
export async function storedTickets(
  store: TicketStore,
  asked: Asked,
): Promise<readonly StoredTicket[]> {
  const calls = new StoreCalls(store, asked)
  const left = (await idsOf(calls)).values()
  const found: StoredTicket[] = []
  const read = async (): Promise<void> => {
    for (const id of left) {
      const ticket = await readTicket(calls, id)
      if (ticket?.id === id) found.push(ticket)
    }
  }
  await Promise.all(Array.from({ length: READ_AT_ONCE }, read))
  return found.sort((a, b) => (a.id < b.id ? -1 : 1))
}

/** Ids that the store lists. */
async function idsOf(calls: StoreCalls): Promise<Set<string>> {
  const listed = listing(calls)
  if (listed === undefined) throw listsNothing()
  const ids = new Set<string>()
  for await (const id of listed) ids.add(id)
  return ids
}

function listsNothing(subject?: string): DrainableError {
  const words =
    'the ticket store lists nothing: give it keys(), as Keyv, unstorage and fileTickets() have'
  return new DrainableError('UNSUPPORTED', subject === undefined ? words : `${subject}: ${words}`)
}

/**
 * Checks that a store can list its tickets.
 *
 * @throws `UNSUPPORTED`
 */
export function checkLists(store: TicketStore, subject: string): void {
  if (!canList(store)) throw listsNothing(subject)
}

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
