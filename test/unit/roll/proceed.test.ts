import { describe, expect, test } from 'vitest'
import { combineProviders, startRoll, type DrainableProvider } from 'drainable'
import type { FakeProvider } from 'drainable/testing'
import { DrainableError } from 'drainable'
import { actor, seenAs, setUp, web } from './set-up.js'

const WEB1 = { pool: 'web', member: 'web1' }
const WEB2 = { pool: 'web', member: 'web2' }
const PAST = { timeout: '5s', onTimeout: 'proceed' } as const

/** The same balancer, where another client drains web2 once the roll has asked whether there is room for web1. */
function tightened(lb: FakeProvider): DrainableProvider {
  let looks = 0
  return {
    ...seenAs(lb, (reading) => reading),
    observe: (refs, ctx) => {
      looks += 1
      if (looks === 3) lb.setBehind(WEB2, 'drain')
      return lb.observe(refs, ctx)
    },
  }
}

/** `onTimeout: 'proceed'` is about work that is left, not about a server that was never taken out. */
describe('a roll that proceeds at the deadline', () => {
  test('does not act on a server that the floor kept in service', async () => {
    const { clock, lb } = setUp(2)
    const { act, calls } = actor(clock)
    const options = { act, clock, onMinimum: 'wait', ...PAST } as const
    const report = await clock.runUntil(startRoll(tightened(lb), [WEB1], options).done)
    expect(calls).toEqual([])
    expect(lb.state(WEB1)).toBe('ready')
    expect(report.servers[0]).toMatchObject({
      outcome: 'failed',
      attempts: 0,
      error: { code: 'POOL_AT_MINIMUM' },
    })
  })

  test('does not act on a server whose hold the balancer refuses', async () => {
    const { clock, lb } = setUp(3)
    const { act, calls } = actor(clock)
    const error = new DrainableError('CONFLICT', 'a reload is under way', { retryable: true })
    lb.failNext('reject', { verb: 'apply', times: 1_000, error })
    const report = await clock.runUntil(startRoll(lb, web, { act, clock, ...PAST }).done)
    expect(calls).toEqual([])
    expect(lb.state(WEB1)).toBe('ready')
    expect(report.servers[0]).toMatchObject({ outcome: 'failed', error: { code: 'CONFLICT' } })
  })

  test('does not act on a server whose hold has no answer', async () => {
    const { clock, lb } = setUp(3)
    const { act, calls } = actor(clock)
    lb.failNext('hang', { verb: 'apply', times: 1_000 })
    const report = await clock.runUntil(startRoll(lb, web, { act, clock, ...PAST }).done, 600_000)
    expect(calls).toEqual([])
    expect(lb.state(WEB1)).toBe('ready')
    expect(report.servers[0]).toMatchObject({
      outcome: 'failed',
      attempts: 0,
      error: { code: 'DRAIN_TIMEOUT' },
    })
    expect(report.servers[0]?.error?.message).toMatch(
      /web\/web1 was not seen drained at the deadline/,
    )
    expect(report.leftDrained).toEqual([])
  })

  test('does not act on a server that a reload has opened again', async () => {
    const { clock, lb } = setUp(3)
    const { act, calls } = actor(clock)
    const end = lb.occupy(WEB1)
    const run = startRoll(lb, [WEB1], { act, clock, ...PAST, timeout: '20s' })
    await clock.advance(10_000)
    lb.failNext('hang', { verb: 'apply', times: 1_000 })
    lb.reload()
    const report = await clock.runUntil(run.done, 600_000)
    end()
    expect(calls).toEqual([])
    expect(report.servers[0]).toMatchObject({ outcome: 'failed', attempts: 0 })
  })

  test('does not act on a server that one of its balancers may still use', async () => {
    const { clock, lb } = setUp(3, { instance: 'a' })
    const away = setUp(3, { instance: 'b', clock }).lb
    const { act, calls } = actor(clock)
    const all = combineProviders({ a: lb, b: away })
    const refs = ['a', 'b'].map((balancer) => ({ ...WEB1, balancer }))
    const run = startRoll(all, refs, {
      act,
      clock,
      ...PAST,
      onUnreachable: 'wait',
      onEvent: ({ type }) => {
        if (type === 'batch') away.disconnect()
      },
    })
    const report = await clock.runUntil(run.done, 600_000)
    expect(calls).toEqual([])
    expect(report.servers[0]).toMatchObject({ outcome: 'failed', attempts: 0 })
  })

  test('acts on one that was taken out and is still at work', async () => {
    const { clock, lb } = setUp(3)
    const { act, calls } = actor(clock)
    const end = lb.occupy(WEB1)
    const report = await clock.runUntil(startRoll(lb, [WEB1], { act, clock, ...PAST }).done)
    end()
    expect(calls).toEqual(['web1 1'])
    expect(report.outcome).toBe('done')
  })
})
