import { describe, expect, test } from 'vitest'
import { startDrain } from 'drainable'
import { a1, b1, bare, setUp } from './set-up.js'

const both = [a1, b1]

describe('idle on two balancers at once', () => {
  test('is not said while one that was idle can not be read', async () => {
    const { clock, a, b, all } = setUp()
    const endB = b.occupy(bare)
    await using run = startDrain(all, both, { clock, timeout: '60s' })
    let isOver = false
    void run.done.then(() => (isOver = true))
    await clock.advance(5_000)
    expect(run.report().members.map(({ phase }) => phase)).toEqual(['idle', 'draining'])
    a.disconnect()
    a.setBehind(bare, 'ready')
    const endA = a.occupy(bare)
    endB()
    await clock.advance(10_000)
    expect(isOver).toBe(false)
    expect(run.why()[0]).toMatchObject({ code: 'unreadable', ref: a1 })
    a.connect()
    await clock.advance(1_000)
    expect(run.report()).toMatchObject({ outcome: 'overruled', members: [{ ref: a1 }, {}] })
    endA()
  })

  test('is unreachable if one that was idle is never read again', async () => {
    const { clock, a, b, all } = setUp()
    const endB = b.occupy(bare)
    await using run = startDrain(all, both, { clock, timeout: '30s' })
    await clock.advance(5_000)
    a.disconnect()
    endB()
    const report = await clock.runUntil(run.done)
    expect(report.outcome).toBe('unreachable')
    expect(report.members.map(({ outcome }) => outcome)).toEqual(['unreachable', 'idle'])
  })

  test('is said once the one that was idle can be read again', async () => {
    const { clock, a, b, all } = setUp()
    const endB = b.occupy(bare)
    await using run = startDrain(all, both, { clock, timeout: '60s' })
    await clock.advance(5_000)
    a.disconnect()
    endB()
    await clock.advance(5_000)
    a.connect()
    const report = await clock.runUntil(run.done)
    expect(report.outcome).toBe('idle')
    expect(report.members.every(({ verifiedIdle }) => verifiedIdle)).toBe(true)
  })

  test('needs a look at each after the time when all were idle', async () => {
    const { clock, a, b, all } = setUp({}, { a: { latency: 400 } })
    const endB = b.occupy(bare)
    await using run = startDrain(all, both, { clock, timeout: '60s' })
    await clock.advance(10_000)
    expect(run.report().members.map(({ phase }) => phase)).toEqual(['idle', 'draining'])
    endB()
    await clock.runUntil(run.done)
    const looks = a.requests.filter(({ verb }) => verb === 'observe').map(({ at }) => at)
    const idleOnB = run.report().members[1]?.proof?.samples[0]?.scopes[0]?.sampledAt
    expect(idleOnB).toBeGreaterThan(11_000)
    expect(Math.max(...looks)).toBeGreaterThanOrEqual(idleOnB ?? Infinity)
  })

  /** Past the deadline, while neither has given up its last look; `a` was idle before it. */
  async function awaitingLastLooks() {
    const { clock, a, b, all } = setUp({}, { a: { latency: 20 } })
    b.occupy(bare)
    const policy = { clock, timeout: '10s', onTimeout: 'proceed', seal: false } as const
    const run = startDrain(all, both, policy)
    await clock.advance(5_000)
    expect(run.report().members.map(({ phase }) => phase)).toEqual(['idle', 'draining'])
    a.failNext('hang', { verb: 'observe' })
    b.failNext('hang', { verb: 'observe' })
    await clock.advance(6_000)
    return { clock, a, run }
  }

  test('is not told by a look from before the deadline', async () => {
    const { clock, a, run } = await awaitingLastLooks()
    a.occupy(bare)
    const { members } = await clock.runUntil(run.done)
    expect(members.map(({ outcome }) => outcome)).toEqual(['proceeded', 'proceeded'])
    expect(clock.now()).toBeLessThan(1_000 + 10_000 + 2_200)
    await run.release()
  })

  test('lets go at once where it is released while the last looks are under way', async () => {
    const { clock, run } = await awaitingLastLooks()
    const from = clock.now()
    await clock.runUntil(run.release())
    expect((await clock.runUntil(run.done)).outcome).toBe('aborted')
    expect(clock.now()).toBe(from)
  })
})
