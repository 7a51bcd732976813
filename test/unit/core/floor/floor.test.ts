import { afterEach, describe, expect, test, vi } from 'vitest'
import { drain, startDrain } from 'drainable'
import { only, setUp, thrown, web1, web2, web3 } from '../set-up.js'

afterEach(() => vi.restoreAllMocks())

/** Another controller takes web2 in the moment our first hold is carried out. */
function takenAtOnce(latency: number): ReturnType<typeof setUp> {
  vi.spyOn(Math, 'random').mockReturnValue(0.99)
  const both = setUp({ pools: { web: ['web1', 'web2'] }, latency })
  const { lb } = both
  const apply = lb.apply.bind(lb)
  let first = true
  lb.apply = (changes, ctx) => {
    if (first) lb.setBehind(web2, 'drain')
    first = false
    return apply(changes, ctx)
  }
  return both
}

test('idle is not said below the floor before the undo is decided', async () => {
  const { clock, lb } = takenAtOnce(0)
  const run = startDrain(lb, web1, { clock, settle: '0ms', timeout: '1m' })
  const report = await clock.runUntil(run.done)
  expect(only(report).error?.code).toBe('POOL_AT_MINIMUM')
  expect(report.outcome).toBe('refused')
  expect(lb.state(web1)).toBe('ready')
  await run.release()
})

test('an undo of ours seen before its answer does not overrule', async () => {
  const { clock, lb } = takenAtOnce(10)
  const apply = lb.apply.bind(lb)
  lb.apply = async (changes, ctx) => {
    const results = await apply(changes, ctx)
    if (changes[0]?.kind === 'restore')
      await new Promise<void>((resolve) => clock.setTimeout(resolve, 300))
    return results
  }
  const run = startDrain(lb, web1, { clock, settle: '5s', timeout: '1m' })
  expect((await clock.runUntil(run.done)).outcome).toBe('refused')
  await clock.runUntil(run.release()) // waits for the answer
})

test('a state that another client set meanwhile is not undone', async () => {
  const { clock, lb } = takenAtOnce(0)
  const run = startDrain(lb, web1, { clock, settle: '5s', timeout: '1m' })
  await clock.advance(500)
  lb.setBehind(web1, 'maint')
  await clock.advance(2_000)
  expect(lb.state(web1)).toBe('maint')
  await run.release()
})

describe('the floor', () => {
  test('refuses a pool of one before any change, naming keepReady: 0', async () => {
    const { clock, lb } = setUp({ pools: { solo: ['only'] } })
    const only = { pool: 'solo', member: 'only' }
    const error = await clock.runUntil(thrown(drain(lb, only, { clock })))
    expect(error).toMatchObject({ code: 'POOL_AT_MINIMUM' })
    expect((error as Error).message).toContain('keepReady: 0')
    expect(lb.requests.filter((call) => call.verb === 'apply')).toEqual([])
    expect((await clock.runUntil(drain(lb, only, { clock, keepReady: 0 }))).outcome).toBe('idle')
  })

  test('refuses a whole pool as a whole', async () => {
    const { clock, lb } = setUp()
    expect(await clock.runUntil(thrown(drain(lb, { pool: 'web' }, { clock })))).toMatchObject({
      code: 'POOL_AT_MINIMUM',
    })
    expect([web1, web2, web3].map((ref) => lb.state(ref))).toEqual(['ready', 'ready', 'ready'])
  })

  test('gives the last place to one of two drains begun at once', async () => {
    const { clock, lb } = setUp({ pools: { web: ['web1', 'web2'] } })
    const runs = [web1, web2].map((ref) =>
      startDrain(lb, ref, { clock, onMinimum: 'wait', timeout: '10s' }),
    )
    const reports = await clock.runUntil(Promise.all(runs.map((run) => run.done)))
    expect(reports.map((report) => report.outcome).sort()).toEqual(['idle', 'refused'])
    for (const run of runs) await run.release()
  })

  test('is met by waiting for a replacement under wait', async () => {
    const { clock, lb } = setUp({ pools: { web: ['web1', 'web2'] } })
    lb.setBehind(web2, 'drain')
    const run = startDrain(lb, web1, { clock, onMinimum: 'wait', timeout: '1m' })
    await clock.advance(10_000)
    expect(lb.state(web1)).toBe('ready')
    expect(run.why()[0]?.code).toBe('pool-at-minimum')
    lb.setBehind(web2, 'ready')
    expect((await clock.runUntil(run.done)).outcome).toBe('idle')
    await run.release()
  })

  test('undoes a hold that leaves too few beside another controller', async () => {
    for (const [onMinimum, outcome] of [
      ['fail', 'refused'],
      ['wait', 'idle'],
    ] as const) {
      const { clock, lb } = setUp({ pools: { web: ['web1', 'web2'] } })
      const apply = lb.apply.bind(lb)
      let first = true
      lb.apply = (changes, ctx) => {
        if (first) lb.setBehind(web2, 'drain')
        first = false
        return apply(changes, ctx)
      }
      const run = startDrain(lb, web1, { clock, onMinimum, timeout: '1m' })
      await clock.advance(1_500)
      expect(lb.state(web1)).toBe('ready')
      lb.setBehind(web2, 'ready')
      const report = await clock.runUntil(run.done)
      expect(report.outcome).toBe(outcome)
      if (outcome === 'refused') expect(only(report).error?.code).toBe('POOL_AT_MINIMUM')
      await run.release()
    }
  })

  test('refuses a wait at the deadline, or proceeds if wished', async () => {
    for (const [onTimeout, outcome] of [
      ['fail', 'refused'],
      ['proceed', 'proceeded'],
    ] as const) {
      const { clock, lb } = setUp({ pools: { web: ['web1'] } })
      const run = startDrain(lb, web1, { clock, onMinimum: 'wait', timeout: '5s', onTimeout })
      const report = await clock.runUntil(run.done)
      expect(report.outcome).toBe(outcome)
      expect(lb.state(web1)).toBe('ready')
      await run.release()
    }
  })

  test('lets a member go that does not serve', async () => {
    const { clock, lb } = setUp({ pools: { web: ['web1', 'web2'] } })
    lb.setHealth(web1, 'down')
    expect((await clock.runUntil(drain(lb, web1, { clock }))).outcome).toBe('idle')
  })
})
