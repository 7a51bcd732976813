import { expect, test } from 'vitest'
import { drain, ready, type Ticket, type TicketStore } from 'drainable'
import { only, setUp, thrown, web1, web2 } from '../set-up.js'

test('an id that still holds another member is not overwritten', async () => {
  const { clock, lb } = setUp({ pools: { web: ['web1', 'web2', 'web3', 'web4'] } })
  const map = new Map<string, unknown>()
  const tickets: TicketStore = {
    get: async (key) => map.get(key),
    set: async (key, value) => map.set(key, value),
    delete: async (key) => map.delete(key),
  }
  await clock.runUntil(drain(lb, web1, { clock, tickets, id: 'deploy' }))
  const error = await clock.runUntil(thrown(drain(lb, web2, { clock, tickets, id: 'deploy' })))
  expect(error).toMatchObject({ code: 'TICKET_INVALID' })
  expect((error as Error).message).toContain('web/web1')
  expect((map.get('deploy') as Ticket).members[0]!.ref).toEqual(web1)
  await clock.runUntil(ready(lb, web1, { clock }))
  expect(
    only(await clock.runUntil(drain(lb, web2, { clock, tickets, id: 'deploy' }))).outcome,
  ).toBe('idle')
})
