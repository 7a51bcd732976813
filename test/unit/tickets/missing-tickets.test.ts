import { describe, expect, test } from 'vitest'
import {
  restore,
  resumeDrain,
  startDrain,
  stepDrain,
  type Ticket,
  type TicketStore,
} from 'drainable'
import { fakeClock, fakeProvider } from 'drainable/testing'

const lb = fakeProvider({ pools: { web: ['web1'] } })

describe('a missing ticket', () => {
  test('is explained by restore()', async () => {
    const error: unknown = await restore(lb, undefined as never).catch((e: unknown) => e)
    expect(error).toMatchObject({ code: 'TICKET_INVALID' })
    expect(String(error)).toContain('there is no ticket (found undefined): the store has none')
  })

  test('is explained by resumeDrain()', () => {
    expect(() => resumeDrain(lb, null as never)).toThrow('there is no ticket (found null)')
  })

  test('leads stepDrain() with a target alone to say how to begin', async () => {
    const from = { pool: 'web', member: 'web1' } as unknown as Ticket
    const error: unknown = await stepDrain(lb, from).catch((e: unknown) => e)
    expect(String(error)).toContain('found a target alone: write { target: ... }')
  })
})

test.each([
  ['"x"', "ticket 'a': what the store has is not JSON, remove it if it is none of ours"],
  ['{"v":9}', 'v is 9, this version reads 1'],
])('a drain under an id that holds %s says what it found', async (text, words) => {
  const store = new Map<string, unknown>([['a', text === '"x"' ? 'x' : text]])
  const tickets = store as unknown as TicketStore
  const lb = fakeProvider({ pools: { web: ['web1', 'web2'] } })
  const run = startDrain(lb, { pool: 'web', member: 'web1' }, { tickets, id: 'a', timeout: '2s' })
  const report = await run.done
  expect(String(report.error)).toContain(words)
  expect(lb.requests.filter(({ verb }) => verb === 'apply')).toEqual([])
})

test('why() of a drain whose store hangs names the store, not the balancer', async () => {
  const clock = fakeClock()
  const lb = fakeProvider({ pools: { web: ['web1', 'web2'] }, clock })
  const tickets: TicketStore = {
    get: () => Promise.resolve(undefined),
    set: () => new Promise(() => undefined),
    delete: () => Promise.resolve(true),
  }
  const web1 = { pool: 'web', member: 'web1' }
  const { members } = await clock.runUntil(
    startDrain(lb, web1, { clock, tickets, timeout: '2m' }).done,
  )
  const said = members.flatMap(({ why }) => why.map(({ text }) => text))
  expect(said[0]).toBe(
    "web/web1: 'hold' was not sent: the ticket could not be saved: no answer from the ticket store within 30 s",
  )
  expect(lb.requests.filter(({ verb }) => verb === 'apply')).toEqual([])
})

test.each<[string, Partial<TicketStore>, boolean]>([
  ['gives no answer can', { set: () => new Promise(() => undefined) }, true],
  ['fails can not', { set: () => Promise.reject(new Error('disk full')) }, false],
])('a drain whose store %s be tried again', async (_, store, retryable) => {
  const clock = fakeClock()
  const lb = fakeProvider({ pools: { web: ['web1', 'web2'] }, clock })
  const tickets: TicketStore = {
    get: () => Promise.resolve(undefined),
    set: () => Promise.resolve(true),
    delete: () => Promise.resolve(true),
    ...store,
  }
  const run = startDrain(lb, { pool: 'web', member: 'web1' }, { clock, tickets, timeout: '2m' })
  const { error, members } = await clock.runUntil(run.done)
  expect(error ?? members[0]?.error).toMatchObject({ code: 'TICKET_INVALID', retryable })
  // The drain has ended: it does not try again itself.
  expect(members[0]?.why[0]?.hint).toBe('it is not tried again')
})
