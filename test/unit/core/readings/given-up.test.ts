import { describe, expect, test } from 'vitest'
import { drain, startDrain } from 'drainable'
import { setUp, thrown, web1 } from '../set-up.js'

describe('a shared look', () => {
  test('does not remember a failed describe that an abort gave up', async () => {
    const { clock, lb } = setUp({ latency: 100 })
    lb.failNext('throw', { verb: 'describe' })
    const stop = new AbortController()
    const caught = thrown(drain(lb, web1, { clock, signal: stop.signal }))
    await clock.advance(10)
    stop.abort('enough')
    expect(await caught).toBe('enough')
    await clock.advance(1_000)
    expect((await clock.runUntil(drain(lb, web1, { clock }))).outcome).toBe('idle')
  })

  test('that no caller waits for is given up', async () => {
    const { clock, lb } = setUp()
    lb.occupy(web1)
    const stop = new AbortController()
    const caught = thrown(drain(lb, web1, { clock, signal: stop.signal }))
    await clock.advance(2_000)
    lb.failNext('hang', { verb: 'observe' })
    await clock.advance(2_000)
    stop.abort('enough')
    expect(await caught).toBe('enough')
    await clock.advance(0)
    expect(clock.pending).toBe(0)
  })

  test('that is slow at the deadline does not mean unreachable', async () => {
    const { clock, lb } = setUp({ latency: 600 })
    lb.occupy(web1)
    const outcomes = new Set<string>()
    for (let ms = 20_000; ms < 24_000; ms += 137) {
      const run = startDrain(lb, web1, { clock, timeout: ms })
      outcomes.add((await clock.runUntil(run.done)).outcome)
      await run.release()
      await clock.advance(5_000)
    }
    expect([...outcomes]).toEqual(['timeout'])
  })
})
