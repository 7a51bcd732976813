import { describe, expect, test } from 'vitest'
import { fromUnstorage } from 'drainable'
import { listTickets, saveTicket } from './calls.js'
import { ticketOf, unstorage } from './set-up.js'

describe('fromUnstorage', () => {
  test('keeps ids apart that unstorage takes for one key', async () => {
    const map = new Map<string, string>()
    const store = fromUnstorage(unstorage(map))
    const ids = ['a', 'a:', ':a', 'a:b', 'a::b', ':', '::']
    for (const id of ids) await saveTicket(store, ticketOf(id))
    expect(map.size).toBe(ids.length)
    for (const id of ids) expect(await store.get(id)).toEqual(ticketOf(id))
  })

  test('has no keys if the storage can not list', () => {
    const { getItem, setItem, removeItem } = unstorage(new Map())
    expect(fromUnstorage({ getItem, setItem, removeItem })).not.toHaveProperty('keys')
  })

  test('calls getKeys on the storage itself', async () => {
    const map = new Map<string, string>()
    const storage = {
      ...unstorage(map),
      map,
      getKeys(): Promise<string[]> {
        return Promise.resolve([...this.map.keys()])
      },
    }
    await saveTicket(fromUnstorage(storage), ticketOf('one'))
    expect(await listTickets(fromUnstorage(storage))).toEqual(['one'])
  })

  test('does not take a folder entry for a ticket', async () => {
    const map = new Map<string, string>()
    const storage = unstorage(map)
    await storage.setItem('cache:one', ticketOf('cache:one') as never)
    expect(await listTickets(fromUnstorage(storage))).toEqual([])
  })
})
