import fc from 'fast-check'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { fileTickets, fromUnstorage, type TicketStore } from 'drainable'
import { dropTicket, listTickets, saveTicket } from './calls.js'
import {
  keyv5,
  keyv6,
  plainStore,
  slowStore,
  temporaryFolder,
  ticketOf,
  unstorage,
} from './set-up.js'

/** Ids that have a meaning in a shell, a path or a key. */
const AWKWARD = [
  'constructor',
  '__proto__',
  'toString',
  'drainable.index',
  'drainable.0.1.ids',
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
  ['get, set and delete', () => shared((map: Map<string, unknown>) => plainStore(map))],
  [
    'keys()',
    () => shared((map: Map<string, unknown>) => ({ ...plainStore(map), keys: () => map.keys() })),
  ],
  ['fileTickets', (folder) => () => fileTickets(folder)],
  ['fromUnstorage', () => shared((map: Map<string, string>) => fromUnstorage(unstorage(map)))],
  [
    'fromUnstorage without getKeys',
    () =>
      shared((map: Map<string, string>) => {
        const { getItem, setItem, removeItem } = unstorage(map)
        return fromUnstorage({ getItem, setItem, removeItem })
      }),
  ],
  ['Keyv 5', () => shared((map: Map<string, string>) => keyv5(map, undefined))],
  ['Keyv 5 with a namespace', () => shared((map: Map<string, string>) => keyv5(map, 'tickets'))],
  ['Keyv 5 with two words of one', () => shared((map: Map<string, string>) => keyv5(map, 'my:t'))],
  [
    'Keyv 5 without an iterator',
    () => shared((map: Map<string, string>) => keyv5(map, 'tickets', 'no')),
  ],
  [
    'Keyv 5 whose iterator shows nothing',
    () => shared((map: Map<string, string>) => keyv5(map, 'tickets', 'nothing')),
  ],
  ['Keyv 6 with a namespace', () => shared((map: Map<string, string>) => keyv6(map, 'tickets'))],
  [
    'Keyv 6 on an adapter without an iterator',
    () => shared((map: Map<string, string>) => keyv6(map, 'tickets', 'nothing')),
  ],
]

function shared<V>(open: (map: Map<string, V>) => TicketStore): Open {
  const map = new Map<string, V>()
  return () => open(map)
}

afterEach(() => {
  vi.useRealTimers()
})

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
  test('needs no key of our own if the store lists', async () => {
    const map = new Map<string, unknown>()
    const texts = new Map<string, string>()
    await saveTicket({ ...plainStore(map), keys: () => map.keys() }, ticketOf('one'))
    await saveTicket(keyv6(texts, 'tickets'), ticketOf('two'))
    await saveTicket(fromUnstorage(unstorage(texts)), ticketOf('three'))
    expect([...map.keys(), ...texts.keys()]).toEqual(['one', 'tickets::two', 'three'])
  })

  test('lists under our own key what the store leaves out', async () => {
    const map = new Map<string, unknown>()
    const open: Open = () => ({
      ...plainStore(map),
      keys: async () => [...map.keys()].filter((key) => !key.includes('::')),
    })
    await saveTicket(open(), ticketOf('a'))
    expect([...map.keys()]).toEqual(['a'])
    await saveTicket(open(), ticketOf('a::b'))
    expect(await listTickets(open())).toEqual(['a', 'a::b'])
  })

  test('waits one second for a list, and then works without', async () => {
    vi.useFakeTimers()
    const map = new Map<string, unknown>()
    const store: TicketStore = { ...plainStore(map), keys: () => new Promise(() => undefined) }
    let saved = false
    const done = saveTicket(store, ticketOf('one')).then(() => (saved = true))
    await vi.advanceTimersByTimeAsync(900)
    expect(saved).toBe(false)
    await vi.advanceTimersByTimeAsync(100)
    await done
    expect(await listTickets(plainStore(map))).toEqual(['one'])
    expect(vi.getTimerCount()).toBe(0)
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

  test('and dropTicket never take a key of our own for an id', async () => {
    const map = new Map<string, unknown>()
    const store = plainStore(map)
    await saveTicket(store, ticketOf('one'))
    const own = [...map.keys()].filter((key) => key !== 'one')
    expect(own.length).toBeGreaterThan(0)
    for (const key of own) {
      await expect(saveTicket(store, ticketOf(key))).rejects.toMatchObject({
        code: 'TICKET_INVALID',
      })
      await dropTicket(store, key)
    }
    expect(await listTickets(store)).toEqual(['one'])
  })

  test('refuses an id that the store takes for another one', async () => {
    const map = new Map<string, string>()
    const store = keyv5(map, 'app')
    await saveTicket(store, ticketOf('app:x'))
    await expect(saveTicket(store, ticketOf('x'))).rejects.toThrow(/'x' and 'app:x' for one key/)
    expect(await listTickets(store)).toEqual(['app:x'])
  })

  test('rejects if the store keeps tickets and nothing else', async () => {
    const map = new Map<string, unknown>()
    const plain = plainStore(map)
    const store: TicketStore = {
      ...plain,
      set: async (key, value) => (key === 'one' ? plain.set(key, value) : false),
    }
    await expect(saveTicket(store, ticketOf('one'))).rejects.toMatchObject({
      code: 'TICKET_INVALID',
    })
  })

  test('accepts a store that gives its JSON text back', async () => {
    const map = new Map<string, string>()
    const open: Open = () => ({
      get: async (key) => map.get(key) ?? null,
      set: async (key, value) => map.set(key, JSON.stringify(value)),
      delete: async (key) => map.delete(key),
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
})

describe('a store that lists nothing', () => {
  test('gets two more requests for each later write of a ticket', async () => {
    const map = new Map<string, unknown>()
    const plain = plainStore(map)
    const requests: string[] = []
    const store: TicketStore = {
      get: (key) => {
        requests.push(`get ${key}`)
        return plain.get(key)
      },
      set: (key, value) => {
        requests.push(`set ${key}`)
        return plain.set(key, value)
      },
      delete: (key) => plain.delete(key),
    }
    await saveTicket(store, ticketOf('one'))
    requests.length = 0
    await saveTicket(store, ticketOf('one'))
    expect(requests).toEqual([
      'set one',
      'get one',
      'get drainable=0.shut',
      'get drainable=0.1.ids',
    ])
  })

  test('has its tickets listed, in whatever order requests are answered', async () => {
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), async (scheduler) => {
        const map = new Map<string, unknown>()
        const ids = Array.from({ length: 60 }, (_, n) => `deploy-${String(n).padStart(2, '0')}`)
        const stores = Array.from({ length: 8 }, () => slowStore(scheduler, map))
        await scheduler.waitFor(
          Promise.all(ids.map((id, n) => saveTicket(stores[n % 8]!, ticketOf(id)))),
        )
        expect(await listTickets(plainStore(map))).toEqual(ids)
        // Fewer than writers where one found no place left in a tree, and took the lists of others over.
        const lists = [...map.keys()].filter((key) => key.endsWith('.ids'))
        expect(lists.length).toBeLessThanOrEqual(8)
      }),
      { numRuns: 10 },
    )
  })
})
