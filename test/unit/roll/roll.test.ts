import { describe, expect, test } from 'vitest'
import { isDrainableError, ready, roll, startRoll, type RollEvent } from 'drainable'
import { thrown } from '../core/set-up.js'
import { actor, membersOf, setUp, web } from './set-up.js'

describe('a roll over the servers of a pool', () => {
  test('drains, acts on and opens one after another', async () => {
    const { clock, lb, refs } = setUp(3)
    const { act, calls, most } = actor(clock, async ({ refs: [ref] }) => {
      expect(lb.state(ref!)).toBe('maint')
      for (const other of refs)
        if (other.member !== ref!.member) expect(lb.state(other)).toBe('ready')
    })
    const events: RollEvent[] = []
    const report = await clock.runUntil(
      roll(lb, web, { act, clock, onEvent: (event) => events.push(event) }),
    )
    expect(report).toMatchObject({ outcome: 'done', untouched: [], failed: [], leftDrained: [] })
    expect(report.servers.map(({ outcome, attempts }) => [outcome, attempts])).toEqual(
      refs.map(() => ['done', 1]),
    )
    expect(report.done.map(({ ref, verifiedIdle }) => [ref.member, verifiedIdle])).toEqual(
      refs.map(({ member }) => [member, true]),
    )
    expect(calls).toEqual(['web1 1', 'web2 1', 'web3 1'])
    expect(most()).toBe(1)
    for (const ref of refs) expect(lb.state(ref)).toBe('ready')
    for (const type of ['idle', 'act', 'ready', 'healthy'] as const)
      expect(membersOf(events, type), type).toEqual(['web1', 'web2', 'web3'])
    expect(events.at(-1)).toMatchObject({ type: 'roll-end', report: { outcome: 'done' } })
  })

  test.each([{}, { id: 'release-42' }])(
    'takes as many at once as allowed (%j)',
    async (options) => {
      const { clock, lb } = setUp(10)
      const { act, calls, most } = actor(clock)
      await clock.runUntil(roll(lb, web, { act, clock, maxUnavailable: '35%', ...options }))
      expect(most()).toBe(3)
      expect(calls).toHaveLength(10)
    },
  )

  test('goes one by one if the pool keeps no more', async () => {
    const { clock, lb } = setUp(3)
    const { act, calls, most } = actor(clock)
    const report = await clock.runUntil(
      roll(lb, web, { act, clock, maxUnavailable: 3, keepReady: 2 }),
    )
    expect(report.outcome).toBe('done')
    expect(most()).toBe(1)
    expect(calls).toHaveLength(3)
  })

  test('is refused if the floor does not allow one', async () => {
    const { clock, lb, refs } = setUp(2)
    const { act, calls } = actor(clock)
    const run = startRoll(lb, web, { act, clock, keepReady: 2 })
    const report = await clock.runUntil(run.done)
    expect(report).toMatchObject({ outcome: 'stopped', leftDrained: [], untouched: [refs[1]] })
    expect(report.failed[0]?.error?.code).toBe('POOL_AT_MINIMUM')
    expect(calls).toEqual([])
  })

  test('ends if the floor does not allow several that begin at once', async () => {
    const { clock, lb, refs } = setUp(4)
    lb.setBehind(refs[3]!, 'maint')
    const { act, calls } = actor(clock)
    const run = startRoll(lb, web, {
      act,
      clock,
      keepReady: 3,
      maxUnavailable: 3,
      onFailure: 'continue',
    })
    const report = await clock.runUntil(run.done)
    expect(report.servers.map(({ outcome }) => outcome)).toEqual([
      'failed',
      'failed',
      'failed',
      'done',
    ])
    expect(report.failed[0]?.error?.code).toBe('POOL_AT_MINIMUM')
    expect(calls).toEqual(['web4 1'])
  })

  test('begins with canaries, and stops if one fails', async () => {
    const { clock, lb, refs } = setUp(6)
    const { act, calls } = actor(clock, async ({ ref }) => {
      if (ref.member === 'web2') throw new Error('no space left on device')
    })
    const run = startRoll(lb, web, {
      act,
      clock,
      canary: 2,
      maxUnavailable: 4,
      onFailure: 'continue',
    })
    const report = await clock.runUntil(run.done)
    expect(calls).toEqual(['web1 1', 'web2 1'])
    expect(report).toMatchObject({
      outcome: 'stopped',
      leftDrained: [refs[1]],
      untouched: refs.slice(2),
    })
    expect(lb.state(refs[0]!)).toBe('ready')
    expect(lb.state(refs[1]!)).toBe('maint')
  })

  test('leaves a failed server drained, and finishes those under way', async () => {
    const { clock, lb, refs } = setUp(6)
    const { act, calls } = actor(clock, async ({ ref }) => {
      if (ref.member === 'web1') throw new Error('exit 1')
      await new Promise<void>((resolve) => void clock.setTimeout(resolve, 5_000))
    })
    const error = await thrown(clock.runUntil(roll(lb, web, { act, clock, maxUnavailable: 2 })))
    if (!isDrainableError(error, 'ROLL_STOPPED')) throw error
    expect(error.message).toMatch(
      /^the roll stopped with 1 of 6 servers done, 1 failed, 4 not begun; it left 1 member drained: web\/web1 .*: act failed: exit 1; ready\(\) with error\.roll\.leftDrained opens/,
    )
    expect(error.roll).toMatchObject({ outcome: 'stopped', leftDrained: [refs[0]] })
    expect(calls).toEqual(['web1 1', 'web2 1'])
    expect(lb.state(refs[0]!)).toBe('maint')
    expect(lb.state(refs[1]!)).toBe('ready')
  })

  test('continues after failures if allowed', async () => {
    const { clock, lb, refs } = setUp(5)
    const work = async ({ ref }: { ref: { member: string } }): Promise<void> => {
      if (ref.member === 'web1' || ref.member === 'web3') throw new Error('exit 1')
    }
    const all = actor(clock, work)
    const maxUnavailable = 3
    const run = startRoll(lb, web, { act: all.act, clock, maxUnavailable, onFailure: 'continue' })
    const report = await clock.runUntil(run.done)
    expect(all.calls).toHaveLength(5)
    expect(report.leftDrained).toEqual([refs[0], refs[2]])
    await clock.runUntil(ready(lb, report.leftDrained, { clock }))
    const some = actor(clock, work)
    const policy = { maxUnavailable: 2, onFailure: { maxFailed: 1 } }
    const second = startRoll(lb, web, { act: some.act, clock, ...policy })
    await clock.runUntil(second.done)
    expect(some.calls).toEqual(['web1 1', 'web2 1', 'web3 1'])
  })

  test('counts a failed server for maxUnavailable', async () => {
    const { clock, lb, refs } = setUp(6)
    const { act, calls } = actor(clock, async () => {
      throw new Error('exit 1')
    })
    const run = startRoll(lb, web, { act, clock, maxUnavailable: 2, onFailure: 'continue' })
    const report = await clock.runUntil(run.done)
    expect(calls).toEqual(['web1 1', 'web2 1'])
    expect(report).toMatchObject({
      outcome: 'stopped',
      leftDrained: refs.slice(0, 2),
      untouched: refs.slice(2),
      error: {
        code: 'ACTION_FAILED',
        message: expect.stringMatching(
          /exit 1; 2 servers are left drained, and maxUnavailable is 2/,
        ) as unknown,
      },
    })
    expect(refs.map((ref) => lb.state(ref)).slice(2)).toEqual(['ready', 'ready', 'ready', 'ready'])
  })

  test('does not count a server that was out before for maxUnavailable', async () => {
    const { clock, lb, refs } = setUp(3)
    lb.setBehind(refs[0]!, 'maint')
    const { act, calls } = actor(clock, async ({ ref }) => {
      if (ref.member === 'web1') throw new Error('exit 1')
    })
    await clock.runUntil(startRoll(lb, web, { act, clock, onFailure: 'continue' }).done)
    expect(calls).toEqual(['web1 1', 'web2 1', 'web3 1'])
  })

  test('holds a failed server through a reload while others are under way', async () => {
    const { clock, lb, refs } = setUp(4)
    const { act } = actor(clock, async ({ ref }) => {
      if (ref.member === 'web1') throw new Error('exit 1')
      if (ref.member !== 'web3') return
      lb.reload()
      expect(lb.state(refs[0]!)).toBe('ready')
      await new Promise<void>((resolve) => void clock.setTimeout(resolve, 2_000))
      expect(lb.state(refs[0]!)).not.toBe('ready')
    })
    const run = startRoll(lb, web, { act, clock, maxUnavailable: 2, onFailure: 'continue' })
    const report = await clock.runUntil(run.done)
    expect(report.servers.map(({ outcome }) => outcome)).toEqual(['failed', 'done', 'done', 'done'])
    expect(report.leftDrained).toEqual([refs[0]])
  })

  test('puts one long connection off to the end, and stops nothing', async () => {
    const { clock, lb, refs } = setUp(4)
    const end = lb.occupy(refs[1]!)
    const events: RollEvent[] = []
    const { act, calls } = actor(clock, async ({ ref }) => {
      if (ref.member === 'web4') end()
    })
    const report = await clock.runUntil(
      roll(lb, web, { act, clock, timeout: '10s', onEvent: (event) => events.push(event) }),
    )
    expect(report.outcome).toBe('done')
    expect(calls).toEqual(['web1 1', 'web3 1', 'web4 1', 'web2 1'])
    expect(membersOf(events, 'postponed')).toEqual(['web2'])
  })

  test('reports a server that never ends as busy, not acted on', async () => {
    const { clock, lb, refs } = setUp(3)
    lb.occupy(refs[0]!)
    const { act, calls } = actor(clock)
    const run = startRoll(lb, web, { act, clock, timeout: '10s' })
    const report = await clock.runUntil(run.done)
    expect(report.servers.map(({ outcome }) => outcome)).toEqual(['busy', 'done', 'done'])
    expect(report).toMatchObject({ outcome: 'stopped', leftDrained: [] })
    expect(report.failed[0]).toMatchObject({ outcome: 'timeout', error: { code: 'DRAIN_TIMEOUT' } })
    expect(calls).toEqual(['web2 1', 'web3 1'])
    expect(lb.state(refs[0]!)).toBe('ready')
  })

  test('stops at one long connection if the policy says so', async () => {
    const { clock, lb, refs } = setUp(3)
    lb.occupy(refs[0]!)
    const { act, calls } = actor(clock)
    const run = startRoll(lb, web, { act, clock, timeout: '10s', onTimeout: 'fail' })
    const report = await clock.runUntil(run.done)
    expect(report).toMatchObject({ outcome: 'stopped', leftDrained: [refs[0]] })
    expect(calls).toEqual([])
    expect(lb.state(refs[0]!)).toBe('drain')
  })

  test('acts on a server that was out before, and leaves it out', async () => {
    const { clock, lb, refs } = setUp(4)
    lb.setBehind(refs[1]!, 'maint')
    lb.setBehind(refs[2]!, 'drain')
    const { act, calls } = actor(clock)
    const report = await clock.runUntil(roll(lb, web, { act, clock }))
    expect(report).toMatchObject({ outcome: 'done', leftDrained: [] })
    expect(calls).toHaveLength(4)
    expect(refs.map((ref) => lb.state(ref))).toEqual(['ready', 'maint', 'drain', 'ready'])
  })

  test('fails a server that is not seen healthy, and does not open it', async () => {
    const { clock, lb, refs } = setUp(3)
    const { act } = actor(clock, async ({ ref }) => lb.setHealth(ref, 'down'))
    const run = startRoll(lb, web, { act, clock, waitHealthy: '20s' })
    const report = await clock.runUntil(run.done)
    expect(report.failed[0]?.error?.code).toBe('HEALTH_TIMEOUT')
    expect(report).toMatchObject({ leftDrained: [refs[0]], untouched: refs.slice(1) })
  })

  test('lets the caller say what healthy is', async () => {
    const { clock, lb, refs } = setUp(3)
    for (const ref of refs) lb.setHealth(ref, 'unchecked')
    const { act } = actor(clock)
    const asked: string[] = []
    const waitHealthy = async ({ member }: { member: string }): Promise<void> =>
      void asked.push(member)
    await clock.runUntil(roll(lb, web, { act, clock, waitHealthy }))
    expect(asked).toEqual(['web1', 'web2', 'web3'])
  })

  test('begins no other server once it is told to stop', async () => {
    const { clock, lb, refs } = setUp(4)
    const { act, calls } = actor(clock, async () => void run.stop())
    const run = startRoll(lb, web, { act, clock })
    const report = await clock.runUntil(run.done)
    expect(report).toMatchObject({ outcome: 'stopped', leftDrained: [], untouched: refs.slice(1) })
    expect(report).not.toHaveProperty('error')
    expect(calls).toEqual(['web1 1'])
    expect(lb.state(refs[0]!)).toBe('ready')
  })
})
