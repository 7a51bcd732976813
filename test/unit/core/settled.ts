import { afterEach, beforeEach } from 'vitest'
import type { FakeClock } from 'drainable/testing'
import type { TicketStore } from 'drainable'
import { json } from './rig.js'

/** Lets everything that needs no clock happen. */
export async function flush(): Promise<void> {
  for (let i = 0; i < 20; i += 1) await new Promise((resolve) => setImmediate(resolve))
}

/** What a promise came to, or `'PENDING'` where it has not settled after that much time. */
export async function settled(
  clock: FakeClock,
  promise: Promise<unknown>,
  limit = 120_000,
): Promise<unknown> {
  let out: unknown = 'PENDING'
  promise.then(
    (value) => (out = value),
    (error: unknown) => (out = error),
  )
  await flush()
  for (let spent = 0; spent < limit && out === 'PENDING'; spent += 500) await clock.advance(500)
  await flush()
  return out
}

/** Rejections that were not handled, noted during each test. */
export function unhandledRejections(): readonly unknown[] {
  const seen: unknown[] = []
  const note = (error: unknown): void => void seen.push(error)
  beforeEach(() => {
    seen.length = 0
    process.on('unhandledRejection', note)
  })
  afterEach(async () => {
    await flush()
    process.off('unhandledRejection', note)
  })
  return seen
}

/** A store in memory whose writings take `delay` milliseconds. */
export function slowStore(clock: FakeClock): TicketStore & { delay: number } {
  const map = new Map<string, unknown>()
  const store = {
    delay: 0,
    get: async (key: string) => map.get(key),
    set: async (key: string, value: unknown) => {
      if (store.delay > 0)
        await new Promise<void>((resolve) => void clock.setTimeout(resolve, store.delay))
      map.set(key, json(value))
      return true
    },
    delete: async (key: string) => map.delete(key),
  }
  return store
}
