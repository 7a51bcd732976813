import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { fileTickets, fromUnstorage, isDrainableError, type TicketStore } from 'drainable'
import { dropTicket, listTickets, saveTicket } from './calls.js'
import {
  keyv5,
  keyv6,
  plainStore,
  slowStore,
  temporaryFolder,
  ticketOf,
  unlistedStore,
  unstorage,
} from './set-up.js'
import { thrown } from '../core/set-up.js'

/** Ids that have a meaning in a shell, a path or a key. */
const AWKWARD = [
  'constructor',
  '__proto__',
  'toString',
  'a',
  'a:b',
  'a::b',
  'a:',
  ':a',
  '@',
  '-',
  'x'.repeat(200),
]

/** One more process on the same store. */
type Open = () => TicketStore

const kinds: readonly (readonly [string, (folder: string) => Open])[] = [
  ['keys()', () => shared((map: Map<string, unknown>) => plainStore(map))],
  ['fileTickets', (folder) => () => fileTickets(folder)],
  ['fromUnstorage', () => shared((map: Map<string, string>) => fromUnstorage(unstorage(map)))],
  ['Keyv 5', () => shared((map: Map<string, string>) => keyv5(map, undefined))],
  ['Keyv 5 with a namespace', () => shared((map: Map<string, string>) => keyv5(map, 'tickets'))],
  ['Keyv 5 with two words of one', () => shared((map: Map<string, string>) => keyv5(map, 'my:t'))],
  ['Keyv 6 with a namespace', () => shared((map: Map<string, string>) => keyv6(map, 'tickets'))],
]

function shared<V>(open: (map: Map<string, V>) => TicketStore): Open {
  const map = new Map<string, V>()
  return () => open(map)
}

describe.each(kinds)('tickets in a store of %s', (_, prepare) => {
  test('are all listed, sixty from twelve processes at once', async () => {
    await using folder = await temporaryFolder()
    const open = prepare(folder.path)
    const ids = Array.from({ length: 60 }, (_, n) => `deploy-${String(n).padStart(2, '0')}`)
    const stores = Array.from({ length: 12 }, open)
    await Promise.all(ids.map((id, n) => saveTicket(stores[n % 12]!, ticketOf(id))))
    expect(await listTickets(open())).toEqual(ids)
  })

  test('have any id that a drain may have', async () => {
    await using folder = await temporaryFolder()
    const open = prepare(folder.path)
    const store = open()
    for (const id of AWKWARD) await saveTicket(store, ticketOf(id))
    expect(await listTickets(open())).toEqual([...AWKWARD].sort())
    for (const id of AWKWARD) expect(await open().get(id)).toEqual(ticketOf(id))
    for (const id of AWKWARD) await dropTicket(store, id)
    expect(await listTickets(open())).toEqual([])
  })

  test('are not listed once any process has dropped them', async () => {
    await using folder = await temporaryFolder()
    const open = prepare(folder.path)
    const writer = open()
    for (const id of ['one', 'two', 'three']) await saveTicket(writer, ticketOf(id))
    await dropTicket(open(), 'one')
    await dropTicket(writer, 'two')
    expect(await listTickets(open())).toEqual(['three'])
    await saveTicket(writer, ticketOf('one'))
    expect(await listTickets(open())).toEqual(['one', 'three'])
  })

  test('are listed without other contents of the store', async () => {
    await using folder = await temporaryFolder()
    const store = prepare(folder.path)()
    await store.set('session', { user: 'me' })
    await store.set('copy', ticketOf('one'))
    await saveTicket(store, ticketOf('one'))
    expect(await listTickets(store)).toEqual(['one'])
  })
})

describe('saveTicket', () => {
  test('writes one key for each ticket', async () => {
    const map = new Map<string, unknown>()
    const texts = new Map<string, string>()
    await saveTicket(plainStore(map), ticketOf('one'))
    await saveTicket(keyv6(texts, 'tickets'), ticketOf('two'))
    await saveTicket(fromUnstorage(unstorage(texts)), ticketOf('three'))
    expect([...map.keys(), ...texts.keys()]).toEqual(['one', 'tickets::two', 'three'])
  })

  test('waits for no list', async () => {
    const map = new Map<string, unknown>()
    const store: TicketStore = { ...plainStore(map), keys: () => new Promise(() => undefined) }
    await saveTicket(store, ticketOf('one'))
    expect(await listTickets(plainStore(map))).toEqual(['one'])
  })

  test('works without a list that fails', async () => {
    const map = new Map<string, unknown>()
    const failing: TicketStore = {
      ...plainStore(map),
      keys: () => Promise.reject(new Error('no rights to list')),
    }
    await saveTicket(failing, ticketOf('one'))
    expect(await listTickets(plainStore(map))).toEqual(['one'])
  })

  test('refuses an id that the store takes for another one', async () => {
    const map = new Map<string, string>()
    const store = keyv5(map, 'app')
    await saveTicket(store, ticketOf('app:x'))
    await expect(saveTicket(store, ticketOf('x'))).rejects.toThrow(/'x' and 'app:x' for one key/)
    expect(await listTickets(store)).toEqual(['app:x'])
  })

  test('accepts a store that gives its JSON text back', async () => {
    const map = new Map<string, string>()
    const open: Open = () => ({
      get: async (key) => map.get(key) ?? null,
      set: async (key, value) => map.set(key, JSON.stringify(value)),
      delete: async (key) => map.delete(key),
      keys: () => map.keys(),
    })
    await saveTicket(open(), ticketOf('one'))
    expect(await listTickets(open())).toEqual(['one'])
  })
})

describe('listTickets', () => {
  test('rejects if the list of the store fails', async () => {
    const failing: TicketStore = {
      ...plainStore(new Map()),
      keys: () => Promise.reject(new Error('no rights to list')),
    }
    await expect(listTickets(failing)).rejects.toThrow('no rights to list')
  })

  test.each<[string, () => unknown, string]>([
    ['a number', () => 5, 'a number'],
    ['a text', () => 'one', 'a string'],
    ['an object', () => ({ one: 1 }), 'an object'],
    ['nothing', () => undefined, 'nothing'],
  ])('refuses %s in place of the keys: it would look like no ticket', async (_, list, words) => {
    const map = new Map<string, unknown>()
    const storage = { ...unstorage(new Map()), getKeys: async () => list() as never }
    const stores: TicketStore[] = [
      { ...plainStore(map), keys: () => list() as never },
      { ...plainStore(map), keys: async () => list() as never },
      fromUnstorage(storage),
    ]
    for (const store of stores) {
      const error: unknown = await listTickets(store).catch((e: unknown) => e)
      expect(isDrainableError(error, 'TICKET_INVALID') && error.message).toBe(
        `the ticket store gave ${words} in place of a list of its keys`,
      )
    }
  })
})

describe('requests of a store', () => {
  test('are two for each later write of a ticket', async () => {
    const plain = plainStore(new Map())
    const requests: string[] = []
    const store: TicketStore = {
      ...plain,
      get: (key) => {
        requests.push(`get ${key}`)
        return plain.get(key)
      },
      set: (key, value) => {
        requests.push(`set ${key}`)
        return plain.set(key, value)
      },
    }
    await saveTicket(store, ticketOf('one'))
    requests.length = 0
    await saveTicket(store, ticketOf('one'))
    expect(requests).toEqual(['set one', 'get one'])
  })

  test('lose no ticket, in whatever order they are answered', async () => {
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), async (scheduler) => {
        const map = new Map<string, unknown>()
        const ids = Array.from({ length: 60 }, (_, n) => `deploy-${String(n).padStart(2, '0')}`)
        const stores = Array.from({ length: 8 }, () => slowStore(scheduler, map))
        await scheduler.waitFor(
          Promise.all(ids.map((id, n) => saveTicket(stores[n % 8]!, ticketOf(id)))),
        )
        expect(await listTickets(plainStore(map))).toEqual(ids)
      }),
      { numRuns: 10 },
    )
  })
})

describe('a store that lists nothing', () => {
  const kinds: readonly (readonly [string, () => TicketStore])[] = [
    ['get, set and delete', () => unlistedStore(new Map())],
    [
      'unstorage without getKeys',
      () => {
        const { getItem, setItem, removeItem } = unstorage(new Map())
        return fromUnstorage({ getItem, setItem, removeItem })
      },
    ],
  ]

  test.each(kinds)('keeps tickets, and refuses to list them: %s', async (_, open) => {
    const store = open()
    await saveTicket(store, ticketOf('one'))
    expect(await store.get('one')).toEqual(ticketOf('one'))
    const error = await thrown(listTickets(store))
    expect(error).toMatchObject({ code: 'UNSUPPORTED' })
    expect((error as Error).message).toContain('keys()')
    await dropTicket(store, 'one')
    expect((await store.get('one')) ?? undefined).toBeUndefined()
  })
})
