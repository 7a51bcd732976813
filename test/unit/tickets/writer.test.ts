import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { restore, startRoll, type Ticket, type TicketStore } from 'drainable'
import { memoryStore } from '../core/rig.js'
import { actor, setUp, web } from '../roll/set-up.js'
import { LONG, startedAt, ticket, writerFor } from './writing.js'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

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
    stored: () => startedAt(kept.map),
    carryOut: () => carryOut(),
    seen: (what) => vi.waitFor(() => expect(written).toContain(what)),
  }
}

test('a write without an answer fails, and the next one is sent', async () => {
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

test('a ticket written after it was dropped is dropped again', async () => {
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

/** A store that forgets the first ticket when it is told to, and not before. */
function slowToForget(): {
  store: TicketStore
  stored: () => string | undefined
  forgotten: () => number
  carryOut: () => void
} {
  const kept = memoryStore()
  let carryOut = (): void => undefined
  let asked = 0
  let forgotten = 0
  return {
    store: {
      ...kept,
      delete: async (key) => {
        if (key === 'job' && ++asked === 1)
          await new Promise<void>((resolve) => (carryOut = resolve))
        await kept.delete(key)
        if (key === 'job') forgotten += 1
      },
    },
    stored: () => startedAt(kept.map),
    forgotten: () => forgotten,
    carryOut: () => carryOut(),
  }
}

test.each([
  { who: 'another run has it', later: ['2'], then: '2' },
  { who: 'nobody has it', later: [], then: undefined },
])('a ticket dropped late, when $who', async ({ later, then }) => {
  const { store, stored, forgotten, carryOut } = slowToForget()
  const [one, other] = [writerFor(store), writerFor(store)]
  await one.save(() => ticket(1))
  const dropped = expect(one.drop()).rejects.toThrow(/no answer .* within 30 s/)
  await vi.advanceTimersByTimeAsync(LONG)
  await dropped
  for (const n of later) await other.save(() => ticket(Number(n)))
  carryOut()
  await vi.waitFor(() => expect([forgotten(), stored()]).toEqual([1, then]))
  await vi.advanceTimersByTimeAsync(1)
  expect(forgotten()).toBe(1)
})

test('a ticket is not written any more by the run that another one replaced', async () => {
  const { map, ...store } = memoryStore()
  const [one, other] = [writerFor(store), writerFor(store)]
  const stored = (): unknown => startedAt(map)
  one.yield()
  await other.save(() => ticket(2))
  await one.save(() => ticket(1))
  expect(stored()).toBe('2')
  await other.drop()
  await one.save(() => ticket(1))
  expect(stored()).toBeUndefined()
})

function hung(): TicketStore {
  const never = (): Promise<never> => new Promise(() => undefined)
  return { get: never, set: never, delete: never }
}

test.each([{}, { id: 'job' }])('a roll %o whose store never answers ends', async (more) => {
  const { clock, lb } = setUp(3)
  const { act, calls } = actor(clock)
  const run = startRoll(lb, web, { act, clock, tickets: hung(), ...more })
  expect(await clock.runUntil(run.done, 120_000)).toMatchObject({
    outcome: 'stopped',
    error: { code: 'TICKET_INVALID' },
  })
  expect(calls).toEqual([])
  expect(lb.requests.filter(({ verb }) => verb === 'apply')).toEqual([])
})

test('restore() of a roll reports a store that never answers', async () => {
  const { clock, lb } = setUp(3)
  const fail = (): Promise<void> => Promise.reject(new Error('exit 1'))
  const run = startRoll(lb, web, { act: fail, clock })
  await clock.runUntil(run.done)
  const left = await run.ticket
  const undone = restore(lb, left, { clock, tickets: hung() })
  const caught = expect(undone).rejects.toMatchObject({ code: 'TICKET_INVALID' })
  await clock.advance(120_000)
  await caught
  expect(lb.state({ pool: 'web', member: 'web1' })).toBe('ready')
})
