/** Stores that report a save they did not make, return an older value, or lose their contents. */
import { describe, expect, test } from 'vitest'
import {
  findOrphans,
  resumeRoll,
  restore,
  startDrain,
  startRoll,
  type Ticket,
  type TicketStore,
} from 'drainable'
import type { FakeClock } from 'drainable/testing'
import { bare, a1, b1, setUp as twoBalancers } from '../combined/set-up.js'
import { actor, setUp, web } from '../roll/set-up.js'
import { json, plainStore } from './set-up.js'

interface Lying extends TicketStore {
  readonly map: Map<string, unknown>
  /** From now on it lies. */
  lie(): void
}

type Lie = (map: Map<string, unknown>) => TicketStore

const LIES: readonly (readonly [string, Lie])[] = [
  ['says saved and keeps nothing', (map) => ({ ...plainStore(map), set: async () => true })],
  [
    'gives back the value of before',
    (map) => {
      const before = new Map(map)
      const old = plainStore(before)
      const now = plainStore(map)
      return {
        ...now,
        get: (key) => old.get(key),
        set: async (key, value) => {
          if (map.has(key)) before.set(key, map.get(key))
          return now.set(key, value)
        },
      }
    },
  ],
  [
    'loses each key that it saves',
    (map) => ({ ...plainStore(map), set: async (key) => map.delete(key) }),
  ],
]

function lyingStore(lie: Lie): Lying {
  const map = new Map<string, unknown>()
  let store = plainStore(map)
  return {
    map,
    get: (key) => store.get(key),
    set: (key, value) => store.set(key, value),
    delete: (key) => store.delete(key),
    lie: () => void (store = lie(map)),
  }
}

function combined() {
  const { clock, a, b, all } = twoBalancers()
  return { clock, all, a, b, states: () => [a.state(bare), b.state(bare)] }
}

describe.each(LIES)('a store that %s', (_, lie) => {
  test('stops a combined drain before its first change', async () => {
    const { clock, all, a, b } = combined()
    const tickets = lyingStore(lie)
    tickets.lie()
    const report = await clock.runUntil(startDrain(all, [a1, b1], { clock, tickets }).done)
    expect(report.outcome).not.toBe('idle')
    const error = report.error ?? report.members[0]?.error
    expect(error).toMatchObject({ code: 'TICKET_INVALID' })
    expect(error?.message).toMatch(/ticket store did not keep ticket '.+', check that it can write/)
    for (const lb of [a, b]) expect(lb.requests.filter(({ verb }) => verb === 'apply')).toEqual([])
  })

  test('is reported in mid-drain over two balancers, which goes on', async () => {
    const { clock, all, b, states } = combined()
    const end = b.occupy(bare)
    const tickets = lyingStore(lie)
    const run = startDrain(all, [a1, b1], { clock, tickets, id: 'job' })
    const faults: string[] = []
    run.on('fault', ({ error }) => faults.push(error.message))
    await clock.advance(2_000)
    expect(states()).toEqual(['maint', 'drain'])
    tickets.lie()
    end()
    const report = await clock.runUntil(run.done)
    expect(report).toMatchObject({ outcome: 'idle', members: [{ sealed: true }, {}] })
    expect(faults).toContainEqual(expect.stringContaining("did not keep ticket 'job'"))
    await clock.runUntil(run.restore())
    expect(states()).toEqual(['ready', 'ready'])
  })

  test('stops a roll before its first change', async () => {
    const { clock, lb } = setUp(3)
    const tickets = lyingStore(lie)
    tickets.lie()
    const { act, calls } = actor(clock)
    const report = await clock.runUntil(startRoll(lb, web, { act, clock, tickets }).done)
    expect(report).toMatchObject({ outcome: 'stopped', error: { code: 'TICKET_INVALID' } })
    expect(calls).toEqual([])
    expect(lb.requests.filter(({ verb }) => verb === 'apply')).toEqual([])
  })

  test('stops a roll, which names every server that it leaves drained', async () => {
    for (const at of [1, 2]) {
      const { clock, lb, refs } = setUp(3)
      const tickets = lyingStore(lie)
      const { act, calls } = actor(clock, async () => {
        if (calls.length === at) tickets.lie()
      })
      const report = await clock.runUntil(startRoll(lb, web, { act, clock, tickets }).done)
      expect(report.outcome).toBe('stopped')
      expect(calls).toHaveLength(at)
      const left = refs.filter((ref) => lb.state(ref) !== 'ready')
      expect(report.leftDrained).toEqual(left)
      const error = report.error ?? report.failed[0]?.error
      expect(error?.message).toContain('did not keep ticket')
    }
  })
})

describe('a store that lost everything', () => {
  /** As after a restart of a store in memory. */
  async function lost(map: Map<string, unknown>, clock: FakeClock, ms: number): Promise<void> {
    await clock.advance(ms)
    map.clear()
  }

  test('has the whole ticket again with the next change, and its list', async () => {
    const { clock, all, b, states } = combined()
    const end = b.occupy(bare)
    const map = new Map<string, unknown>()
    const run = startDrain(all, [a1, b1], { clock, tickets: plainStore(map), id: 'job' })
    await lost(map, clock, 2_000)
    end()
    await clock.runUntil(run.done)
    await run.release()
    const ticket = map.get('job') as Ticket
    map.set('job', { ...ticket, owner: { ...ticket.owner, host: 'elsewhere' } })
    const theirs = plainStore(map)
    const [orphan] = await clock.runUntil(findOrphans(theirs, all, { clock }))
    expect(orphan?.members.map(({ own, owes }) => [own, owes])).toEqual([
      ['maint', true],
      ['maint', true],
    ])
    await clock.runUntil(restore(all, orphan!.ticket, { clock, tickets: theirs }))
    expect(states()).toEqual(['ready', 'ready'])
  })

  test('does not stop a roll, which another process can continue', async () => {
    const { clock, lb, refs } = setUp(3)
    const map = new Map<string, unknown>()
    const { act, calls } = actor(clock, async ({ ref }) => {
      if (ref.member === 'web1') map.clear()
      if (ref.member === 'web2') throw new Error('exit 1')
    })
    const options = { act, clock, tickets: plainStore(map), id: 'job' }
    await clock.runUntil(startRoll(lb, web, options).done)
    expect(calls).toEqual(['web1 1', 'web2 1'])
    const next = actor(clock)
    const stored = (await plainStore(map).get('job')) as Ticket
    const report = await clock.runUntil(
      resumeRoll(lb, stored, { act: next.act, clock, tickets: plainStore(map) }).done,
    )
    expect(report.outcome).toBe('done')
    expect(next.calls).toEqual(['web2 2', 'web3 1'])
    expect(refs.map((ref) => lb.state(ref))).toEqual(['ready', 'ready', 'ready'])
  })
})

describe('a ticket that is older than the changes', () => {
  test('of a drain over two balancers says what it does not open', async () => {
    const { clock, all, a, b, states } = combined()
    const saved: Ticket[] = []
    const onTicket = (ticket: Ticket): void => void saved.push(json(ticket) as Ticket)
    const run = startDrain(all, [a1, b1], { clock, onTicket, id: 'job' })
    await clock.runUntil(run.done)
    await run.release()
    const ends = new Set<string>()
    for (const ticket of saved) {
      for (const lb of [a, b]) lb.setBehind(bare, 'maint')
      const undo = await clock.runUntil(restore(all, ticket, { clock }))
      for (const { ref, outcome } of undo.members)
        ends.add(`${outcome}: ${states()[ref.balancer === 'a' ? 0 : 1]}`)
    }
    expect([...ends].sort()).toEqual(['overruled: maint', 'restored: ready'])
  })

  test('of a roll opens what it knows, and names what it leaves out', async () => {
    const { clock, lb, refs } = setUp(3)
    const saved: Ticket[] = []
    const onTicket = (ticket: Ticket): void => void saved.push(json(ticket) as Ticket)
    const { act } = actor(clock, async ({ ref }) => {
      if (ref.member === 'web3') throw new Error('exit 1')
    })
    await clock.runUntil(startRoll(lb, web, { act, clock, onTicket, id: 'job' }).done)
    expect(refs.map((ref) => lb.state(ref))).toEqual(['ready', 'ready', 'maint'])
    const outcomes = new Set<string>()
    for (const ticket of saved) {
      lb.setBehind(refs[2]!, 'maint')
      const next = actor(clock)
      const report = await clock.runUntil(resumeRoll(lb, ticket, { act: next.act, clock }).done)
      outcomes.add(report.outcome)
      const out = refs.filter((ref) => lb.state(ref) !== 'ready')
      const { leftDrained, leftAsFound, untouched } = report
      expect([...leftDrained, ...leftAsFound, ...untouched]).toEqual(expect.arrayContaining(out))
      if (report.outcome === 'stopped') expect(report.error?.message).toContain('another client')
    }
    expect([...outcomes].sort()).toEqual(['done', 'stopped'])
  })
})
