import { describe, expect, test } from 'vitest'
import { fakeClock } from 'drainable/testing'
import { doubling, firstAnswer, retried } from '../../../src/kit/retry.js'
import { until } from '../../../src/kit/until.js'

class Busy extends Error {}
const again = (error: unknown): boolean => error instanceof Busy
const waits = doubling(250, 3)

function setUp() {
  const clock = fakeClock()
  const stop = new AbortController()
  return { clock, stop, ctx: { clock, signal: stop.signal } }
}

describe('a retry', () => {
  test('waits by the clock of the call only', async () => {
    const { clock, ctx } = setUp()
    const at: number[] = []
    const run = retried(ctx, { waits, again }, (attempt) => {
      at.push(clock.now())
      return attempt < 4 ? Promise.reject(new Busy()) : Promise.resolve('done')
    })
    const begun = clock.now()
    expect(await clock.runUntil(run)).toBe('done')
    expect(at.map((each) => each - begun)).toEqual([0, 250, 750, 1_750])
    expect(clock.pending).toBe(0)
  })

  test('ends with the error of the last try', async () => {
    const { clock, ctx } = setUp()
    let tries = 0
    const run = retried(ctx, { waits, again }, () => Promise.reject(new Busy(`${++tries}`)))
    await expect(clock.runUntil(run)).rejects.toThrow('4')
  })

  test('is not made if it can not help', async () => {
    const { clock, ctx } = setUp()
    let tries = 0
    const run = retried(ctx, { waits, again }, () => Promise.reject(new Error(`${++tries}`)))
    await expect(run).rejects.toThrow('1')
    expect(clock.pending).toBe(0)
  })

  test('stops at once when the signal fires in a pause', async () => {
    const { clock, stop, ctx } = setUp()
    const run = retried(ctx, { waits, again }, () => Promise.reject(new Busy()))
    const ended = expect(run).rejects.toBe('enough')
    await clock.advance(100)
    stop.abort('enough')
    await ended
    expect(clock.pending).toBe(0)
  })
})

describe('a wait for a result', () => {
  test('looks at once, and then at the pace until it is there', async () => {
    const { clock, ctx } = setUp()
    let looks = 0
    const run = until(ctx, { every: 100, within: 1_000 }, () => (++looks === 4 ? looks : undefined))
    expect(await clock.runUntil(run)).toBe(4)
    expect(clock.now()).toBe(300)
  })

  test('ends when the time is over, after a last look', async () => {
    const { clock, ctx } = setUp()
    let looks = 0
    const run = until<true>(ctx, { every: 300, within: 1_000 }, () => {
      looks += 1
      return undefined
    })
    expect(await clock.runUntil(run)).toBe(undefined)
    expect(looks).toBe(5)
    expect(clock.pending).toBe(0)
  })

  test('looks no more after an abort', async () => {
    const { clock, stop, ctx } = setUp()
    const run = until<true>(ctx, { every: 300, within: 1_000 }, () => undefined)
    const ended = expect(run).rejects.toBe('enough')
    await clock.advance(10)
    stop.abort('enough')
    await ended
    expect(clock.pending).toBe(0)
  })
})

describe('the first answer of several units', () => {
  const race = { headStart: 1_000 }

  test('is that of the first one while it is quick', async () => {
    const { clock, ctx } = setUp()
    const asked: string[] = []
    const ask = (unit: string): Promise<string> => {
      asked.push(unit)
      return Promise.resolve(unit)
    }
    expect(await clock.runUntil(firstAnswer(['a', 'b'], race, ask, ctx))).toBe('a')
    expect(asked).toEqual(['a'])
    expect(clock.pending).toBe(0)
  })

  test('is not waited for where one hangs, and that one is given up', async () => {
    const { clock, ctx } = setUp()
    const given: AbortSignal[] = []
    const ask = (unit: string, { signal }: { signal: AbortSignal }): Promise<string> => {
      given.push(signal)
      return unit === 'a' ? new Promise(() => undefined) : Promise.resolve(unit)
    }
    const begun = clock.now()
    expect(await clock.runUntil(firstAnswer(['a', 'b'], race, ask, ctx))).toBe('b')
    expect(clock.now() - begun).toBe(1_000)
    expect(given[0]?.aborted).toBe(true)
  })

  const onlyC = (unit: string): Promise<string> =>
    unit === 'c' ? Promise.resolve(unit) : Promise.reject(new Busy(unit))

  test('is the next one at once where one fails', async () => {
    const { clock, ctx } = setUp()
    const begun = clock.now()
    expect(await clock.runUntil(firstAnswer(['a', 'b', 'c'], race, onlyC, ctx))).toBe('c')
    expect(clock.now()).toBe(begun)
  })

  test('is the first error where all fail', async () => {
    const { clock, ctx } = setUp()
    await expect(clock.runUntil(firstAnswer(['a', 'b'], race, onlyC, ctx))).rejects.toThrow('a')
  })

  test('is not looked for after an error that is final', async () => {
    const { clock, ctx } = setUp()
    const asked: string[] = []
    const ask = (unit: string): Promise<string> => {
      asked.push(unit)
      return Promise.reject(new Busy(unit))
    }
    const isFinal = (): boolean => true
    const run = firstAnswer(['a', 'b'], { ...race, isFinal }, ask, ctx)
    await expect(clock.runUntil(run)).rejects.toThrow('a')
    expect(asked).toEqual(['a'])
  })
})
