import { describe, expect, test } from 'vitest'
import { drain, ready, type ReadyOptions } from 'drainable'
import { setUp, thrown, web1, web2 } from '../set-up.js'

type Rig = ReturnType<typeof setUp>
type Check = NonNullable<ReadyOptions['waitHealthy']>

/** Two members that hold no work, both in maint by a drain of ours. */
async function drained(): Promise<Rig> {
  const both = setUp()
  const { clock, lb } = both
  lb.setHealth(web1, 'unchecked')
  lb.setHealth(web2, 'unchecked')
  await clock.runUntil(drain(lb, [web1, web2], { clock }))
  return both
}

function hanging(signals: AbortSignal[] = []): Check {
  return (_, signal) => {
    signals.push(signal)
    return new Promise(() => undefined)
  }
}

describe('a hanging health check of the caller', () => {
  test('is given up after 30 s', async () => {
    const { clock, lb } = await drained()
    const from = clock.now()
    const error = await clock.runUntil(thrown(ready(lb, web1, { clock, waitHealthy: hanging() })))
    expect(error).toMatchObject({ code: 'HEALTH_TIMEOUT', ref: web1 })
    expect((error as Error).message).toContain("the caller's health check")
    expect(clock.now() - from).toBeLessThan(31_000)
    expect(lb.state(web1)).toBe('drain')
    expect(clock.pending).toBe(0)
  })

  test('is given up after the timeout of ready()', async () => {
    const { clock, lb } = await drained()
    const from = clock.now()
    const o = { clock, waitHealthy: hanging(), timeout: '2m' } as const
    expect(await clock.runUntil(thrown(ready(lb, web1, o)))).toMatchObject({
      code: 'HEALTH_TIMEOUT',
    })
    expect(clock.now() - from).toBeGreaterThanOrEqual(120_000)
    expect(clock.now() - from).toBeLessThan(121_000)
  })

  test('is told by its signal that it is given up', async () => {
    const { clock, lb } = await drained()
    const signals: AbortSignal[] = []
    const o = { clock, waitHealthy: hanging(signals), timeout: '5s' } as const
    await clock.runUntil(thrown(ready(lb, web1, o)))
    expect(signals.map(({ aborted }) => aborted)).toEqual([true])
    expect(signals[0]?.reason).toMatchObject({ code: 'HEALTH_TIMEOUT' })
  })

  test('does not hold back an abort', async () => {
    const { clock, lb } = await drained()
    const stop = new AbortController()
    const signals: AbortSignal[] = []
    const o = { clock, waitHealthy: hanging(signals), signal: stop.signal }
    const caught = thrown(ready(lb, web1, o))
    await clock.advance(1_000)
    expect(signals).toHaveLength(1)
    stop.abort('enough')
    expect(await caught).toBe('enough')
    expect(signals[0]?.aborted).toBe(true)
    await clock.advance(0)
    expect(clock.pending).toBe(0)
  })

  test('does not hold back another member', async () => {
    const { clock, lb } = await drained()
    const waitHealthy: Check = (ref) =>
      ref.member === 'web1' ? new Promise(() => undefined) : Promise.resolve()
    await clock.runUntil(thrown(ready(lb, [web1, web2], { clock, waitHealthy })))
    expect([lb.state(web1), lb.state(web2)]).toEqual(['drain', 'ready'])
  })
})

test('a health check is not given up under timeout: Infinity', async () => {
  const { clock, lb } = await drained()
  const waitHealthy = (): Promise<void> =>
    new Promise((resolve) => void clock.setTimeout(resolve, 600_000))
  await clock.runUntil(ready(lb, web1, { clock, waitHealthy, timeout: Infinity }))
  expect(lb.state(web1)).toBe('ready')
})

test('the timeout of ready() bounds the check of the balancer too', async () => {
  const { clock, lb } = await drained()
  lb.setHealth(web1, 'down')
  const from = clock.now()
  const caught = thrown(ready(lb, web1, { clock, waitHealthy: true, timeout: '1m' }))
  expect(await clock.runUntil(caught)).toMatchObject({ code: 'HEALTH_TIMEOUT' })
  expect(clock.now() - from).toBeGreaterThanOrEqual(60_000)
})

test('a duration for waitHealthy beside a timeout is refused', async () => {
  const { clock, lb } = setUp()
  const caught = thrown(ready(lb, web1, { clock, waitHealthy: '5s', timeout: '1m' }))
  expect(await clock.runUntil(caught)).toMatchObject({ code: 'INVALID_OPTIONS' })
  expect(lb.requests).toEqual([])
})
