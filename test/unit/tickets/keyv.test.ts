import { describe, expect, test } from 'vitest'
import type { TicketStore } from 'drainable'
import { listTickets, saveTicket } from './calls.js'
import { keyv5, keyv6, ticketOf } from './set-up.js'

describe('Keyv as it is', () => {
  test.each([
    ['5', keyv5, undefined],
    ['5', keyv5, 'tickets'],
    ['6', keyv6, undefined],
    ['6', keyv6, 'tickets'],
  ] as const)('%s lists by its iterator, without keys of our own', async (_, open, namespace) => {
    const map = new Map<string, string>()
    await saveTicket(open(map, namespace), ticketOf('a:b'))
    await saveTicket(open(map, namespace), ticketOf('c'))
    expect(await listTickets(open(map, namespace))).toEqual(['a:b', 'c'])
    expect(map.size).toBe(2)
  })

  test('5 on an adapter without an iterator keeps tickets, and lists nothing', async () => {
    const map = new Map<string, string>()
    await saveTicket(keyv5(map, 'tickets', 'no'), ticketOf('a:b'))
    expect([...map.keys()]).toEqual(['tickets:a:b'])
    await expect(listTickets(keyv5(map, 'tickets', 'no'))).rejects.toMatchObject({
      code: 'UNSUPPORTED',
    })
  })

  test.each([
    ['5', keyv5],
    ['6', keyv6],
  ] as const)('%s lists its own namespace only', async (_, open) => {
    const map = new Map<string, string>()
    await saveTicket(open(map, 'app'), ticketOf('one'))
    await saveTicket(open(map, 'app2'), ticketOf('two'))
    expect(await listTickets(open(map, 'app'))).toEqual(['one'])
    expect(await listTickets(open(map, 'app2'))).toEqual(['two'])
  })

  test('5 rejects a list if its iterator fails', async () => {
    const map = new Map<string, string>([['foreign', 'not JSON']])
    const store: TicketStore = keyv5(map, undefined)
    await saveTicket(store, ticketOf('one'))
    await expect(listTickets(store)).rejects.toThrow(/JSON/)
  })
})
