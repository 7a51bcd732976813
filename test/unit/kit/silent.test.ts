import { expect, test } from 'vitest'
import { fakeClock } from 'drainable/testing'
import { briefly, Silent } from '../../../src/kit/retry.js'

function setUp() {
  const clock = fakeClock()
  const stop = new AbortController()
  return { clock, stop, ctx: { clock, signal: stop.signal } }
}

test('a silent unit is asked less and less often, at least each minute', async () => {
  const { clock, ctx } = setUp()
  const silent = new Silent<string>()
  const pauses: number[] = []
  for (let i = 0; i < 7; i += 1) {
    const { retryAt } = silent.note('b', 'reset', ctx)
    expect(silent.isLeft('b', ctx)).toBe(true)
    pauses.push(retryAt - clock.now())
    await clock.advance(retryAt - clock.now())
    expect(silent.isLeft('b', ctx)).toBe(false)
  }
  expect(pauses).toEqual([2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000])
})

test('a silent unit that was not asked keeps its pause, and its first reason', async () => {
  const { clock, ctx } = setUp()
  const silent = new Silent<string>()
  const first = silent.note('b', 'reset', ctx)
  await clock.advance(1_000)
  expect(silent.note('b', 'not asked', ctx)).toEqual(first)
  silent.end('b')
  expect(silent.isLeft('b', ctx)).toBe(false)
})

test('a brief question ends at its limit, by the clock of the call', async () => {
  const { clock, ctx } = setUp()
  const ask = ({ signal }: { signal: AbortSignal }): Promise<number> =>
    new Promise((_, reject) => {
      signal.addEventListener('abort', () => {
        reject(new Error('over'))
      })
    })
  const begun = clock.now()
  expect(await clock.runUntil(briefly(ctx, 1_000, ask))).toBeUndefined()
  expect(clock.now() - begun).toBe(1_000)
  expect(clock.pending).toBe(0)
})

test('a brief question that failed is no failure, unless its call was given up', async () => {
  const { stop, ctx } = setUp()
  const fail = (): Promise<number> => Promise.reject(new Error('reset'))
  expect(await briefly(ctx, 1_000, fail)).toBeUndefined()
  const reason = new Error('enough')
  stop.abort(reason)
  await expect(briefly(ctx, 1_000, fail)).rejects.toBe(reason)
})
