/** A roll whose ticket store gives no answer from some moment on. */
import { expect, test } from 'vitest'
import { startRoll, type Ticket, type TicketStore } from 'drainable'
import { jsonStore } from '../combined/set-up.js'
import { actor, setUp, web } from './set-up.js'

/** @param silent - whether what is about to be written gets no answer */
function silentFrom(silent: (ticket: Ticket) => boolean): TicketStore & { isSilent: boolean } {
  const kept = jsonStore()
  const store = {
    ...kept,
    isSilent: false,
    set: (key: string, value: unknown) => {
      store.isSilent ||= silent(value as Ticket)
      return store.isSilent ? new Promise<never>(() => undefined) : kept.set(key, value)
    },
  }
  return store
}

test('a roll opens the server it acted on, and stops at the next', async () => {
  const { clock, lb, refs } = setUp(3)
  const tickets = silentFrom(({ roll }) => roll?.servers[0]?.state === 'acted')
  const { act, calls } = actor(clock)
  const faults: string[] = []
  const run = startRoll(lb, web, {
    act,
    clock,
    tickets,
    onEvent: (event) => {
      if (event.type === 'fault') faults.push(event.error.message)
    },
  })
  const { outcome, servers, error } = await clock.runUntil(run.done, 300_000)
  expect(calls).toEqual(['web1 1'])
  expect([outcome, ...servers.map((server) => server.outcome)]).toEqual([
    'stopped',
    'done',
    'failed',
    'untouched',
  ])
  expect(error?.message).toMatch(/no answer from the ticket store within 30 s/)
  expect(faults).toContain(
    'the ticket could not be saved: no answer from the ticket store within 2 s',
  )
  expect(refs.map((ref) => lb.state(ref))).toEqual(['ready', 'ready', 'ready'])
})

test('a roll does not act on what its ticket can not say', async () => {
  const { clock, lb, refs } = setUp(3)
  const tickets = silentFrom(({ roll }) => roll?.servers[0]?.state === 'acting')
  const { act, calls } = actor(clock)
  const run = startRoll(lb, web, { act, clock, tickets })
  const { outcome, servers } = await clock.runUntil(run.done, 300_000)
  expect([outcome, servers[0]?.outcome, calls]).toEqual(['stopped', 'failed', []])
  expect(servers[0]?.error?.message).toMatch(/no answer from the ticket store within 2 s/)
  expect(lb.state(refs[0]!)).toBe('ready')
})

test('why() of a roll names the store that does not answer', async () => {
  const { clock, lb } = setUp(3)
  const tickets = silentFrom(() => true)
  const run = startRoll(lb, web, { act: () => Promise.resolve(), clock, tickets })
  await clock.advance(3_000)
  expect(run.why()).toMatchObject([
    { code: 'ticket', text: 'the ticket store has not answered for 3 s', ref: { member: 'web1' } },
  ])
  await clock.runUntil(run.close(), 10_000)
})

test('a roll whose ticket can not be deleted at its end says so', async () => {
  const { clock, lb } = setUp(3)
  const tickets = { ...jsonStore(), delete: () => Promise.reject(new Error('disk full')) }
  const faults: object[] = []
  const run = startRoll(lb, web, {
    act: () => Promise.resolve(),
    clock,
    tickets,
    onEvent: (event) => {
      if (event.type === 'fault') faults.push(event.error)
    },
  })
  expect((await clock.runUntil(run.done, 300_000)).outcome).toBe('done')
  expect(faults).toMatchObject([
    { code: 'TICKET_INVALID', message: 'the ticket could not be deleted: disk full' },
  ])
})
