import { expect, test } from 'vitest'
import { plan, resumeRoll, startRoll, type RollEvent, type Ticket } from 'drainable'
import { jsonStore } from '../combined/set-up.js'
import { actor, setUp, web } from './set-up.js'

const removed = { until: 'removed', keepReady: 1 } as const
const two = ['web1', 'web2'].map((member) => ({ ...web, member }))

test('a roll until removed acts on each server once it is out for good', async () => {
  const { clock, lb } = setUp(3)
  const seen: unknown[] = []
  const events: RollEvent['type'][] = []
  const run = startRoll(lb, two, {
    ...removed,
    clock,
    onEvent: ({ type }) => void events.push(type),
    act: async ({ ref, drained }) => void seen.push([ref.member, drained.outcome, lb.state(ref)]),
  })
  const report = await clock.runUntil(run.done)
  expect(report.outcome).toBe('done')
  expect(seen).toEqual(two.map(({ member }) => [member, 'removed', 'gone']))
  expect(events).not.toContain('ready')
  expect(lb.state({ ...web, member: 'web3' })).toBe('ready')
})

test('a roll until removed stops at the floor', async () => {
  const { clock, lb } = setUp(2)
  const { act, calls } = actor(clock)
  const run = startRoll(lb, two, { ...removed, clock, act })
  expect(await clock.runUntil(run.done)).toMatchObject({
    outcome: 'stopped',
    error: { code: 'POOL_AT_MINIMUM' },
  })
  expect(calls).toHaveLength(1)
  expect(lb.state(two[1]!)).toBe('ready')
})

test('a busy server is removed at its deadline, where that is asked for', async () => {
  const { clock, lb } = setUp(3)
  const { act, calls } = actor(clock)
  lb.occupy(two[0]!)
  const options = { ...removed, onTimeout: 'remove', timeout: '5s' } as const
  const run = startRoll(lb, two, { ...options, clock, act })
  const report = await clock.runUntil(run.done)
  expect(report).toMatchObject({
    outcome: 'done',
    servers: [{ drained: { members: [{ outcome: 'removed', verifiedIdle: false }] } }, {}],
  })
  expect(calls).toHaveLength(2)
})

test('a server that was removed when its act failed is not left drained', async () => {
  const { clock, lb } = setUp(3)
  const act = (): Promise<void> => Promise.reject(new Error('no quota'))
  const report = await clock.runUntil(startRoll(lb, two, { ...removed, clock, act }).done)
  expect(report).toMatchObject({ outcome: 'stopped', leftDrained: [] })
})

test('a resumed roll acts again on a server that was removed', async () => {
  const { clock, lb } = setUp(3)
  const tickets = jsonStore()
  const attempts: string[] = []
  const first = startRoll(lb, two, {
    ...{ ...removed, clock, tickets, id: 'job' },
    act: () => Promise.reject(new Error('no quota')),
  })
  await clock.runUntil(first.done)
  const ticket = (await tickets.get('job')) as Ticket
  const again = resumeRoll(lb, ticket, {
    ...{ clock, tickets },
    act: async ({ ref, attempt }) => void attempts.push(`${ref.member} ${attempt}`),
  })
  expect(await clock.runUntil(again.done)).toMatchObject({ outcome: 'done' })
  expect(attempts).toEqual(['web1 2', 'web2 1'])
  expect(await tickets.get('job')).toBeUndefined()
})

test('the plan of a roll until removed says so', async () => {
  const { clock, lb } = setUp(3)
  const { notes } = await clock.runUntil(plan(lb, two, { ...removed, clock, canary: 1 }))
  expect(notes?.[0]).toContain('after its drain each is taken out of its pools, and acted on')
})
