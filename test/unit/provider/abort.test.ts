import { afterEach, beforeEach, expect, test } from 'vitest'
import { abortable } from '../../../src/provider/abort.js'

const unhandled: unknown[] = []
const note = (reason: unknown): void => void unhandled.push(reason)

beforeEach(() => {
  unhandled.length = 0
  process.on('unhandledRejection', note)
})
afterEach(() => void process.off('unhandledRejection', note))

async function microtasks(n: number): Promise<void> {
  for (let i = 0; i < n; i += 1) await Promise.resolve()
}

// An abort can come at any moment, even before the work is handed over, and the work may fail after it.
test.each(Array.from({ length: 40 }, (_, i) => i))(
  'work that fails %i microtasks after an abort is handled',
  async (offset) => {
    const stop = new AbortController()
    const work = microtasks(10).then(() => Promise.reject(new Error('failed')))
    const abort = microtasks(offset).then(() => stop.abort(new Error('aborted')))
    await microtasks(5)
    const ended = abortable(work, stop.signal).catch((error: unknown) => error)
    expect(['failed', 'aborted']).toContain(((await ended) as Error).message)
    await abort
    await new Promise((resolve) => setImmediate(resolve))
    expect(unhandled).toEqual([])
  },
)

test('work goes on without an abort, and its value is returned', async () => {
  expect(await abortable(Promise.resolve(1), new AbortController().signal)).toBe(1)
  expect(await abortable(Promise.resolve(2), undefined)).toBe(2)
})
