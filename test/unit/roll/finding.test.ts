/** What a roll does while its balancer can't be read before its servers are known. */
import { describe, expect, test } from 'vitest'
import { startRoll } from 'drainable'
import { actor, setUp, web } from './set-up.js'

const WAIT = { onUnreachable: 'wait' } as const

describe('a roll that looks for its servers', () => {
  test('says that the balancer has not answered yet', async () => {
    const { clock, lb } = setUp(2)
    lb.failNext('hang', { verb: 'observe' })
    const { act } = actor(clock)
    const roll = startRoll(lb, web, { act, clock })
    await clock.advance(2_000)
    expect(roll.why()).toMatchObject([{ code: 'unreadable', hint: 'nothing was changed yet' }])
    await clock.runUntil(roll.close())
  })

  test('waits for a balancer that is away, where the policy says so, and says what it waits for', async () => {
    const { clock, lb } = setUp(2)
    lb.disconnect()
    const { act } = actor(clock)
    const roll = startRoll(lb, web, { act, clock, ...WAIT })
    await clock.advance(20_000)
    expect(roll.why()[0]?.text).toContain("the balancer can't be read")
    lb.connect()
    const { outcome, done } = await clock.runUntil(roll.done)
    expect([outcome, done.length]).toEqual(['done', 2])
  })

  test('gives up after the time that one server may take', async () => {
    const { clock, lb } = setUp(2)
    lb.disconnect()
    const { act } = actor(clock)
    const roll = startRoll(lb, web, { act, clock, timeout: '30s', ...WAIT })
    const { outcome, error, elapsed } = await clock.runUntil(roll.done)
    expect([outcome, error?.code]).toEqual(['stopped', 'UNREACHABLE'])
    expect(elapsed).toBeGreaterThan(28_000)
    expect(elapsed).toBeLessThanOrEqual(30_000)
  })

  test('stops at once without that option', async () => {
    const { clock, lb } = setUp(2)
    lb.disconnect()
    const { act } = actor(clock)
    const { outcome, elapsed } = await clock.runUntil(startRoll(lb, web, { act, clock }).done)
    expect([outcome, elapsed]).toEqual(['stopped', 0])
  })
})
