import { describe, expect, test } from 'vitest'
import {
  combineProviders,
  drain,
  findOrphans,
  isDrainableError,
  restore,
  resumeDrain,
  select,
  startDrain,
  stepDrain,
  type DrainStep,
  type DrainableProvider,
  type Ticket,
  type TicketStore,
} from 'drainable'
import { DrainableError } from 'drainable/provider'
import { fakeProvider, type FakeClock } from 'drainable/testing'
import { TicketWriter } from '../../../src/core/tickets/writing/writer.js'
import { anotherObject } from '../core/rig.js'
import { thrown } from '../core/set-up.js'
import { a1, b1, bare, jsonStore, setUp } from './set-up.js'

const both = [a1, b1]

/** What another process would have: another object for the same balancers. */
function ticketOf(store: ReturnType<typeof jsonStore>, id: string): Ticket {
  return JSON.parse(store.map.get(id)!) as Ticket
}

async function steps(
  clock: FakeClock,
  from: () => Promise<DrainStep>,
  again: (ticket: Ticket) => Promise<DrainStep>,
): Promise<DrainStep> {
  let step = await clock.runUntil(from())
  for (let i = 0; i < 200 && step.outcome === undefined; i += 1) {
    await clock.advance(step.againIn)
    step = await clock.runUntil(again(JSON.parse(JSON.stringify(step.ticket)) as Ticket))
  }
  return step
}

describe('the ticket of a drain over two balancers', () => {
  test('names all members and balancers before the first change', async () => {
    const { clock, a, b, all } = setUp()
    const seen: [Ticket, string[]][] = []
    const onTicket = (ticket: Ticket): void =>
      void seen.push([ticket, [a, b].map((lb) => lb.state(bare))])
    await clock.runUntil(drain(all, both, { clock, onTicket }))
    const [first, states] = seen[0]!
    expect(states).toEqual(['ready', 'ready'])
    expect(first.members.map(({ ref }) => ref)).toEqual(both)
    expect(first.parts.map(({ balancer, instance }) => [balancer, instance])).toEqual([
      ['a', 'a'],
      ['b', 'b'],
    ])
  })

  test('leaves out a balancer that an address has no members on', async () => {
    const { clock, a, all } = setUp({}, { a: { pools: { web: ['web1', 'web2', 'web3', 'web4'] } } })
    const web4 = { pool: 'web', member: 'web4' }
    const [reading] = await clock.runUntil(select(a, web4, { clock }))
    const { address } = reading as { address: string }
    await using run = startDrain(all, { address }, { clock })
    await clock.runUntil(run.done)
    expect((await run.ticket).parts.map(({ balancer }) => balancer)).toEqual(['a'])
  })

  test('is one in the store, and gone once both are opened', async () => {
    const { clock, all } = setUp()
    const tickets = jsonStore()
    const run = startDrain(all, both, { clock, tickets, id: 'job' })
    await clock.runUntil(run.done)
    expect([...tickets.map.keys()]).toEqual(['job'])
    await clock.runUntil(run.restore())
    expect([...tickets.map.keys()]).toEqual([])
  })

  test('resumes on both in another process', async () => {
    const { clock, a, b, all } = setUp()
    const tickets = jsonStore()
    const end = b.occupy(bare)
    const first = startDrain(all, both, { clock, tickets, id: 'job', timeout: '5m' })
    await clock.advance(5_000)
    await clock.runUntil(first.release())
    const other = combineProviders({ a, b })
    const resumed = resumeDrain(other, ticketOf(tickets, 'job'), { clock, tickets })
    await clock.advance(5_000)
    expect(resumed.report().members.map(({ phase }) => phase)).toEqual(['idle', 'draining'])
    end()
    expect((await clock.runUntil(resumed.done)).outcome).toBe('idle')
    await clock.runUntil(resumed.restore())
    expect([a.state(bare), b.state(bare)]).toEqual(['ready', 'ready'])
    expect(tickets.map.size).toBe(0)
  })

  test('keeps a balancer that was never read', async () => {
    const { clock, a, b, all } = setUp()
    const tickets = jsonStore()
    b.disconnect()
    const policy = { timeout: '30s', seal: false, onUnreachable: 'wait' } as const
    const first = startDrain(all, both, { clock, tickets, id: 'job', ...policy })
    await clock.advance(5_000)
    await clock.runUntil(first.release())
    const ticket = ticketOf(tickets, 'job')
    expect(ticket.parts[1]).toMatchObject({ balancer: 'b', target: [bare] })
    b.connect()
    b.occupy(bare)
    await using resumed = resumeDrain(combineProviders({ a, b }), ticket, { clock, tickets })
    const report = await clock.runUntil(resumed.done)
    expect(report.members.map(({ ref, outcome }) => [ref.balancer, outcome])).toEqual([
      ['a', 'idle'],
      ['b', 'timeout'],
    ])
    expect(ticketOf(tickets, 'job').members).toHaveLength(2)
  })

  test('is undone by another process, and kept while one is unreachable', async () => {
    const { clock, a, b, all } = setUp()
    const tickets = jsonStore()
    await clock.runUntil(drain(all, both, { clock, tickets, id: 'job' }))
    b.disconnect()
    const other = combineProviders({ a, b })
    const report = await clock.runUntil(
      restore(other, ticketOf(tickets, 'job'), { clock, tickets }),
    )
    expect(report.members.map(({ outcome }) => outcome)).toEqual(['restored', 'unreachable'])
    b.connect()
    const left = ticketOf(tickets, 'job')
    const again = await clock.runUntil(restore(other, left, { clock, tickets }))
    expect(again.outcome).toBe('restored')
    expect([a.state(bare), b.state(bare)]).toEqual(['ready', 'ready'])
    expect(tickets.map.size).toBe(0)
  })

  test('is bound to these balancers only', async () => {
    const { clock, a, b, all } = setUp()
    const tickets = jsonStore()
    await clock.runUntil(drain(all, both, { clock, tickets, id: 'job' }))
    const ticket = ticketOf(tickets, 'job')
    const c = fakeProvider({ pools: { web: ['web1'] }, clock, instance: 'c' })
    const report = await clock.runUntil(restore(combineProviders({ c, b, a }), ticket, { clock }))
    expect(report.outcome).toBe('restored')
    for (const wrong of [a, combineProviders({ a, b: c }), combineProviders({ a })]) {
      const error = await thrown(restore(wrong, ticket, { clock }))
      expect(isDrainableError(error, 'TICKET_INVALID')).toBe(true)
    }
    const ofA = startDrain(a, bare, { clock })
    await clock.runUntil(ofA.done)
    const plain = await ofA.ticket
    expect(isDrainableError(await thrown(restore(all, plain, { clock })), 'TICKET_INVALID')).toBe(
      true,
    )
    await ofA.release()
  })

  test('is taken over by a second drain of the same id', async () => {
    const { clock, a, b, all } = setUp()
    const tickets = jsonStore()
    await clock.runUntil(drain(all, both, { clock, tickets, id: 'job' }))
    const again = startDrain(combineProviders({ a, b }), both, { clock, tickets, id: 'job' })
    await clock.runUntil(again.done)
    await clock.runUntil(again.restore())
    expect([a.state(bare), b.state(bare)]).toEqual(['ready', 'ready'])
    await clock.runUntil(drain(all, both, { clock, tickets, id: 'job' }))
    const error = await thrown(clock.runUntil(drain(all, a1, { clock, tickets, id: 'job' })))
    expect(isDrainableError(error, 'TICKET_INVALID') && error.message).toContain('b:web/web1')
  })

  test('left behind is found with what each balancer holds', async () => {
    const { clock, b, all } = setUp()
    const tickets = jsonStore()
    await clock.runUntil(drain(all, both, { clock, tickets, id: 'job' }))
    const ticket = ticketOf(tickets, 'job')
    await tickets.set('job', { ...ticket, owner: { ...ticket.owner, host: 'elsewhere' } })
    b.setBehind(bare, 'ready')
    const [orphan] = await clock.runUntil(findOrphans(tickets, all, { clock }))
    expect(orphan!.members.map(({ ref, own, owes }) => [ref.balancer, own, owes])).toEqual([
      ['a', 'maint', true],
      ['b', 'ready', false],
    ])
  })

  test('is refused by a failing store with both balancers untouched', async () => {
    const { clock, a, b, all } = setUp()
    const tickets = { ...jsonStore(), set: () => Promise.reject(new Error('disk full')) }
    const run = startDrain(all, both, { clock, tickets, timeout: '10s' })
    const report = await clock.runUntil(run.done)
    expect(['idle', 'terminated', 'proceeded', 'removed']).not.toContain(report.outcome)
    expect([a.state(bare), b.state(bare)]).toEqual(['ready', 'ready'])
  })
})

describe('steps over two balancers', () => {
  test('end as idle once both are', async () => {
    const { clock, a, b, all } = setUp()
    const end = b.occupy(bare)
    const policy = { timeout: '5m' } as const
    let step = await clock.runUntil(stepDrain(all, { target: both, policy }, { clock }))
    for (let i = 0; i < 40; i += 1) {
      await clock.advance(Math.min(step.againIn, 500))
      step = await clock.runUntil(stepDrain(all, step.ticket, { clock }))
    }
    expect(step.outcome).toBeUndefined()
    expect(step.phase).toBe('draining')
    expect(step.why.some(({ ref, code }) => ref.balancer === 'b' && code === 'in-flight')).toBe(
      true,
    )
    end()
    const last = await steps(
      clock,
      () => stepDrain(all, step.ticket, { clock }),
      (ticket) => stepDrain(all, ticket, { clock }),
    )
    expect(last.outcome).toBe('idle')
    expect(last.ticket.members.map(({ ref }) => ref)).toEqual(both)
    expect([a.state(bare), b.state(bare)]).toEqual(['maint', 'maint'])
  })

  test('continue if one balancer can not be read, and end with both', async () => {
    const { clock, a, b, all } = setUp()
    b.disconnect()
    const policy = { timeout: '10m', seal: false, onUnreachable: 'wait' } as const
    let step = await clock.runUntil(stepDrain(all, { target: both, policy }, { clock }))
    for (let i = 0; i < 20; i += 1) {
      await clock.advance(Math.min(step.againIn, 500))
      step = await clock.runUntil(stepDrain(all, step.ticket, { clock }))
    }
    expect(a.state(bare)).toBe('drain')
    expect(step.outcome).toBeUndefined()
    expect(step.why[0]).toMatchObject({ code: 'unreadable' })
    b.connect()
    const last = await steps(
      clock,
      () => stepDrain(all, step.ticket, { clock }),
      (ticket) => stepDrain(all, ticket, { clock }),
    )
    expect(last.outcome).toBe('idle')
    expect(b.state(bare)).toBe('drain')
    expect(last.ticket.members).toHaveLength(2)
  })

  test('end as refused for a missing named member, which is not left out', async () => {
    const { clock, b, all } = setUp({ onMissing: 'skip' })
    b.disconnect()
    const nobody = { ...b1, member: 'nobody' }
    const policy = { timeout: '10m', onUnreachable: 'wait' } as const
    const step = await clock.runUntil(stepDrain(all, { target: [a1, nobody], policy }, { clock }))
    b.connect()
    const { outcome, why } = await clock.runUntil(stepDrain(all, step.ticket, { clock }))
    expect([outcome, why[0]?.text]).toEqual(['refused', expect.stringMatching(/^b: .*not found/)])
  })

  test('change nothing if one of them refuses at first', async () => {
    const { clock, a, b, all } = setUp()
    b.setBehind({ pool: 'web', member: 'web2' }, 'maint')
    b.setBehind({ pool: 'web', member: 'web3' }, 'maint')
    const error = await thrown(clock.runUntil(stepDrain(all, { target: both }, { clock })))
    expect(isDrainableError(error, 'POOL_AT_MINIMUM')).toBe(true)
    expect([a.state(bare), b.state(bare)]).toEqual(['ready', 'ready'])
  })
})

test('restore() of a ticket without members drops it, even mid-write', async () => {
  const { clock, all } = setUp()
  const { map, ...kept } = jsonStore()
  let write = (): void => undefined
  const tickets: TicketStore = {
    ...kept,
    set: async (key, value) => {
      if (key === 'job') await new Promise<void>((resolve) => (write = resolve))
      return kept.set(key, value)
    },
  }
  const empty = { ...(await emptyTicket(all, clock)), id: 'job' }
  const other = new TicketWriter('job', { store: tickets }, clock)
  const writing = other.save(() => empty, 30_000)
  await clock.advance(0)
  const undone = restore(all, empty, { clock, tickets })
  await clock.advance(0)
  write()
  await Promise.all([writing, undone])
  expect(map.has('job')).toBe(false)
})

test('restore() says what it has undone beside a balancer that may not be read', async () => {
  const { clock, a, b, all } = setUp()
  await using run = startDrain(all, both, { clock })
  await clock.runUntil(run.done)
  const ticket = JSON.parse(JSON.stringify(await run.ticket)) as Ticket
  await clock.runUntil(run.release())
  const forbidden = anotherObject(b, () => {
    throw new DrainableError('FORBIDDEN', 'the password was refused')
  })
  const next = combineProviders({ a, b: forbidden })
  const { members } = await clock.runUntil(restore(next, ticket, { clock }))
  expect(members.map(({ ref, outcome }) => [ref.balancer, outcome])).toEqual([
    ['a', 'restored'],
    ['b', 'refused'],
  ])
  expect(a.state(bare)).toBe('ready')
})

/** The ticket of a drain that had not found its members yet. */
async function emptyTicket(lb: DrainableProvider, clock: FakeClock): Promise<Ticket> {
  const run = startDrain(lb, both, { clock })
  const ticket = await clock.runUntil(run.ticket)
  await clock.runUntil(run.release())
  return { ...ticket, members: [] }
}
