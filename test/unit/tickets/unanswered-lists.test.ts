/** A store that answers nothing when tickets are looked for: they must not be taken for none. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { findOrphans, heldMembers, type TicketStore } from 'drainable'
import { setUp } from '../core/set-up.js'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

const never = (): Promise<never> => new Promise(() => undefined)
const nothing = { get: async () => undefined, set: never, delete: never }

const SILENT: readonly (readonly [string, TicketStore])[] = [
  ['get()', { get: never, set: never, delete: never, keys: () => ['job'] }],
  ['keys()', { ...nothing, keys: never }],
  ['the second key of an iterator', { ...nothing, keys: oneAndNoMore }],
]

async function* oneAndNoMore(): AsyncGenerator<string> {
  yield 'job'
  await never()
}

test.each(SILENT)('findOrphans() rejects where %s gets no answer', async (_, store) => {
  const { clock, lb } = setUp()
  const found = clock.runUntil(findOrphans(store, lb, { clock }), 60_000)
  await expect(found).rejects.toThrow('no answer from the ticket store within 30 s')
})

test.each(SILENT)('heldMembers() rejects where %s gets no answer', async (_, store) => {
  const held = expect(heldMembers(store)).rejects.toThrow(
    'no answer from the ticket store within 30 s',
  )
  await vi.advanceTimersByTimeAsync(31_000)
  await held
})
