/** Looks that get no answer do not count as what a look costs: the looks after them come at the usual pace. */
import { describe, expect, test } from 'vitest'
import { drain } from 'drainable'
import { only, web1 } from '../set-up.js'
import { rig } from '../rig.js'

/** A balancer that does not answer so many looks, each until the limit of a call (30 s). */
const HANGS = [1, 3, 5] as const

describe.each(HANGS)('after %i looks without an answer', (times) => {
  test('idle is told as soon as it answers', async () => {
    const { clock, lb } = rig()
    const end = lb.occupy(web1)
    const run = drain(lb, web1, { clock, timeout: '10m' })
    await clock.advance(2_000)
    lb.failNext('hang', { times })
    const looks = (): number => lb.requests.filter(({ verb }) => verb === 'observe').length
    const before = looks()
    while (looks() < before + times) await clock.advance(100)
    end()
    const from = clock.now()
    const report = await clock.runUntil(run)
    expect(report.outcome).toBe('idle')
    // The last of them waits for its limit, and the look after it for the pause after a failure.
    expect(clock.now() - from).toBeLessThan(36_000)
  })

  test('a reload during an action is seen at once', async () => {
    const { clock, lb } = rig()
    const { promise: done, resolve: finish } = Promise.withResolvers<undefined>()
    const run = drain(lb, web1, { clock, timeout: '1m' }, () => done)
    await clock.advance(3_000)
    lb.failNext('hang', { times })
    await clock.advance(times * 36_000)
    lb.reload()
    const from = clock.now()
    expect(lb.state(web1)).toBe('ready')
    while (lb.state(web1) === 'ready') await clock.advance(10)
    expect(clock.now() - from).toBeLessThanOrEqual(1_000)
    finish(undefined)
    await clock.runUntil(run)
  })

  test('the deadline stands', async () => {
    const { clock, lb } = rig()
    lb.occupy(web1)
    const run = drain(lb, web1, { clock, timeout: '3m', onTimeout: 'proceed' })
    await clock.advance(2_000)
    lb.failNext('hang', { times: times + 10 })
    const report = await clock.runUntil(run)
    expect(only(report).outcome).toBe('proceeded')
    expect(clock.now()).toBeLessThanOrEqual(184_000)
  })
})
