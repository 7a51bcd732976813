/** The queue in which the runs of one process write one ticket: the last run repairs what a store carried out late. */
import fc from 'fast-check'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { fileTickets, fromUnstorage, type TicketStore } from 'drainable'
import { memoryStore } from '../core/rig.js'
import { flush } from '../core/settled.js'
import { temporaryFolder } from './set-up.js'
import { LONG, startedAt, ticket, writerFor } from './writing.js'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

/** A store that carries each writing out when it is told to, in whatever order. */
function gated(): {
  readonly store: TicketStore
  readonly stored: () => string | undefined
  /** Writings that were asked for. */
  readonly asked: () => number
  /** Carries one of them out, by its number. */
  readonly carryOut: (n: number) => Promise<void>
} {
  const { map, ...kept } = memoryStore()
  const gates: (() => void)[] = []
  // What lists the ticket has a key of its own.
  const gate = async (key: string): Promise<void> => {
    if (key === 'job') await new Promise<void>((resolve) => void gates.push(resolve))
  }
  return {
    store: {
      ...kept,
      set: async (key, value) => {
        await gate(key)
        return kept.set(key, value)
      },
      delete: async (key) => {
        await gate(key)
        return kept.delete(key)
      },
    },
    stored: () => startedAt(map),
    asked: () => gates.length,
    carryOut: async (n) => {
      gates[n]?.()
      await flush()
    },
  }
}

test('a late write does not bring back a ticket that is to be dropped', async () => {
  const { store, stored, asked, carryOut } = gated()
  const [one, other] = [writerFor(store), writerFor(store)]
  one.save(() => ticket(1)).catch(() => undefined)
  await flush()
  await vi.advanceTimersByTimeAsync(LONG)
  const second = one.save(() => ticket(2))
  await flush()
  const dropped = other.drop()
  await carryOut(0) // while the second one is under way, and the drop waits for it
  await carryOut(1)
  await second
  await carryOut(2)
  await dropped
  for (let n = 3; n < asked(); n += 1) await carryOut(n)
  expect(stored()).toBeUndefined()
})

/** A store whose writings take their time, also more than a store may take. */
function slow(delays: readonly number[]): { store: TicketStore; stored: () => string | undefined } {
  const { map, ...kept } = memoryStore()
  let asked = 0
  const slowly = async (key: string, work: () => unknown): Promise<void> => {
    const delay = delays[asked++ % delays.length]
    if (key === 'job') await new Promise((resolve) => void setTimeout(resolve, delay))
    work()
  }
  return {
    store: {
      ...kept,
      set: (key, value) => slowly(key, () => kept.set(key, value)),
      delete: (key) => slowly(key, () => kept.delete(key)),
    },
    stored: () => startedAt(map),
  }
}

const step = fc.record({
  what: fc.constantFrom('save', 'save', 'drop'),
  after: fc.integer({ min: 0, max: 40_000 }),
})
const run = fc.array(step, { minLength: 1, maxLength: 4 })

test('the ticket of the last of several runs is there at last', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 0, max: 80_000 }), { minLength: 1, maxLength: 8 }),
      fc.array(run, { minLength: 1, maxLength: 3 }),
      async (delays, runs) => {
        const { store, stored } = slow(delays)
        let [n, wanted] = [0, undefined as string | undefined]
        for (const steps of runs) {
          const writer = writerFor(store)
          let [isDropped, now] = [false, 0]
          for (const { what, after } of steps) {
            now = n += 1
            const asked = what === 'drop' ? writer.drop() : writer.save(() => ticket(now))
            asked.catch(() => undefined)
            isDropped ||= what === 'drop'
            wanted = isDropped ? undefined : String(now)
            await vi.advanceTimersByTimeAsync(after)
          }
        }
        await vi.advanceTimersByTimeAsync(3_600_000)
        expect(stored()).toBe(wanted)
      },
    ),
  )
})

test('two stores over one storage write in one queue', async () => {
  const { store, stored, asked, carryOut } = gated()
  const storage = {
    getItem: (key: string) => store.get(key),
    setItem: (key: string, value: never) => store.set(key, value),
    removeItem: (key: string) => store.delete(key),
  }
  const [one, other] = [writerFor(fromUnstorage(storage)), writerFor(fromUnstorage(storage))]
  const saved = one.save(() => ticket(1))
  const dropped = other.drop()
  await flush()
  expect(asked()).toBe(1)
  await carryOut(0)
  await carryOut(1)
  await Promise.all([saved, dropped])
  expect(stored()).toBeUndefined()
})

test('two stores of files in one folder keep what is written to both', async () => {
  await using folder = await temporaryFolder()
  const writers = [folder.path, `${folder.path}/.`].map((path) => writerFor(fileTickets(path)))
  const saves = writers.map((writer, n) => writer.save(() => ticket(n)))
  await expect(Promise.all(saves)).resolves.toBeDefined()
  expect(await fileTickets(folder.path).get('job')).toMatchObject({ startedAt: '1' })
})
