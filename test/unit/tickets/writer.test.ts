import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { restore, startRoll, type Ticket, type TicketStore } from 'drainable'
import { TicketWriter } from '../../../src/core/tickets/writer.js'
import { memoryStore } from '../core/rig.js'
import { actor, setUp, web } from '../roll/set-up.js'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

/** More than a store may take for one answer. */
const LONG = 31_000

/** A ticket, as far as a store can tell. */
function ticket(n: number): Ticket {
  return { v: 1, id: 'job', startedAt: String(n) } as unknown as Ticket
}

/** A store whose first writing is carried out when it is told to, and not before. */
function slowAtFirst(): {
  store: TicketStore
  stored: () => string | undefined
  carryOut: () => void
  /** Resolves once that was written. */
  seen: (what: string) => Promise<void>
} {
  const kept = memoryStore()
  let carryOut = (): void => undefined
  let isFirst = true
  const written: unknown[] = []
  return {
    store: {
      ...kept,
      set: async (key, value) => {
        if (isFirst) {
          isFirst = false
          await new Promise<void>((resolve) => (carryOut = resolve))
        }
        written.push((value as Partial<Ticket>).startedAt)
        return kept.set(key, value)
      },
    },
    stored: () => (kept.map.get('job') as Ticket | undefined)?.startedAt,
    carryOut: () => carryOut(),
    seen: (what) => vi.waitFor(() => expect(written).toContain(what)),
  }
}

function writerFor(store: TicketStore): TicketWriter {
  return new TicketWriter('job', { store, onTicket: undefined })
}

test('a writing without an answer fails, and the next one goes out', async () => {
  const { store, stored } = slowAtFirst()
  const writer = writerFor(store)
  const first = expect(writer.save(() => ticket(1))).rejects.toThrow(/no answer .* within 30 s/)
  await vi.advanceTimersByTimeAsync(1)
  const second = writer.save(() => ticket(2))
  await vi.advanceTimersByTimeAsync(LONG)
  await first
  await second
  expect(stored()).toBe('2')
})

test('an old ticket that a store writes late does not stay', async () => {
  const { store, stored, carryOut, seen } = slowAtFirst()
  const writer = writerFor(store)
  writer.save(() => ticket(1)).catch(() => undefined)
  await vi.advanceTimersByTimeAsync(1)
  const second = writer.save(() => ticket(2))
  await vi.advanceTimersByTimeAsync(LONG)
  await second
  carryOut()
  await seen('1')
  await vi.waitFor(() => expect(stored()).toBe('2'))
})

test('a ticket that is written after it was dropped is dropped again', async () => {
  const { store, stored, carryOut, seen } = slowAtFirst()
  const writer = writerFor(store)
  writer.save(() => ticket(1)).catch(() => undefined)
  await vi.advanceTimersByTimeAsync(1)
  const dropped = writer.drop()
  await vi.advanceTimersByTimeAsync(LONG)
  await dropped
  carryOut()
  await seen('1')
  await vi.waitFor(() => expect(stored()).toBeUndefined())
})

function hung(): TicketStore {
  const never = (): Promise<never> => new Promise(() => undefined)
  return { get: never, set: never, delete: never }
}

test.each([{}, { id: 'job' }])('a roll %o whose store never answers ends', async (more) => {
  const { clock, lb } = setUp(3)
  const { act, calls } = actor(clock)
  const run = startRoll(lb, web, { act, clock, tickets: hung(), ...more })
  await vi.advanceTimersByTimeAsync(5 * LONG)
  expect(await run.done).toMatchObject({ outcome: 'stopped', error: { code: 'TICKET_INVALID' } })
  expect(calls).toEqual([])
  expect(lb.requests.filter(({ verb }) => verb === 'apply')).toEqual([])
})

test('restore() of a roll says so where the store never answers', async () => {
  const { clock, lb } = setUp(3)
  const fail = (): Promise<void> => Promise.reject(new Error('exit 1'))
  const run = startRoll(lb, web, { act: fail, clock })
  await clock.runUntil(run.done)
  const left = await run.ticket
  const undone = restore(lb, left, { clock, tickets: hung() })
  const caught = expect(undone).rejects.toMatchObject({ code: 'TICKET_INVALID' })
  await clock.advance(60_000)
  await vi.advanceTimersByTimeAsync(LONG)
  await caught
  expect(lb.state({ pool: 'web', member: 'web1' })).toBe('ready')
})
