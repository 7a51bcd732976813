import { afterEach, describe, expect, test, vi } from 'vitest'
import type { Capabilities } from 'drainable'
import { DrainableError, drain, plan, resumeDrain, startDrain } from 'drainable'
import type { Policy, Ticket } from 'drainable'
import { only, recorder, setUp, thrown, web1, web2 } from '../set-up.js'
import { stepped } from '../stepped.js'

afterEach(() => vi.restoreAllMocks())

const AFTER_30_S = { timeout: '30s', until: 'removed', onTimeout: 'remove' } as const

const refusal = (call: Promise<unknown>): Promise<DrainableError> =>
  thrown(call) as Promise<DrainableError>

function lbWith(capabilities: Partial<Capabilities>) {
  const it = setUp({ capabilities: { countsAfterRemove: false, ...capabilities } })
  const kinds = (): string[] =>
    it.lb.requests.flatMap(({ changes = [] }) => changes.map(({ kind }) => kind))
  const removedAt = (): number | undefined =>
    it.lb.requests.find(({ changes = [] }) => changes.some(({ kind }) => kind === 'remove'))?.at
  return { ...it, kinds, removedAt, policy: { clock: it.clock, ...AFTER_30_S } }
}

describe('a removal at the deadline', () => {
  test.each([
    ['keeps', { outcome: 'removed', terminated: 0 }],
    ['cuts', { outcome: 'terminated', terminated: 2 }],
    ['unknown', { outcome: 'terminated', terminated: 2, terminatedAtMost: true }],
    ['refuses', { outcome: 'terminated', terminated: 2 }],
  ] as const)('takes a busy member out where a removal %s work', async (removal, expected) => {
    const { clock, lb, policy } = lbWith({ removal })
    lb.occupy(web1, 2)
    const report = await clock.runUntil(drain(lb, web1, policy))
    expect(only(report)).toMatchObject({ ...expected, phase: 'removed', verifiedIdle: false })
    expect(lb.state(web1)).toBe('gone')
  })

  test('is not sent before the deadline', async () => {
    const { clock, lb, policy, removedAt } = lbWith({ removal: 'keeps' })
    lb.occupy(web1)
    const from = clock.now()
    await clock.runUntil(drain(lb, web1, policy))
    expect((removedAt() ?? 0) - from).toBeGreaterThanOrEqual(30_000)
    expect((removedAt() ?? 0) - from).toBeLessThan(31_000)
  })

  test('does not wait where the member is idle before', async () => {
    const { clock, lb, policy } = lbWith({ removal: 'cuts' })
    const report = await clock.runUntil(drain(lb, web1, policy))
    expect(only(report)).toMatchObject({ outcome: 'removed', verifiedIdle: true, terminated: 0 })
    expect(report.elapsed).toBeLessThan(5_000)
  })

  test('cuts only once the product has refused it at work', async () => {
    const { clock, lb, policy, kinds } = lbWith({ removal: 'refuses' })
    lb.occupy(web1, 2)
    const seen = recorder()
    await clock.runUntil(drain(lb, web1, { ...policy, onEvent: seen.onEvent }))
    expect(kinds().filter((kind) => kind !== 'hold')).toEqual(['remove', 'terminate', 'remove'])
    expect(seen.of('terminated')).toEqual([expect.objectContaining({ count: 2 })])
  })

  test('cuts nothing where it is refused for good', async () => {
    const { clock, lb, policy, kinds } = lbWith({ removal: 'refuses' })
    lb.occupy(web1)
    const apply = lb.apply.bind(lb)
    lb.apply = (changes, ctx) => {
      const error = new DrainableError('REJECTED', 'web2 tracks it')
      if (changes.some(({ kind }) => kind === 'remove'))
        lb.failNext('reject', { verb: 'apply', error })
      return apply(changes, ctx)
    }
    const error = await clock.runUntil(refusal(drain(lb, web1, policy)))
    expect(error.code).toBe('REJECTED')
    expect(only(error.report!)).toMatchObject({ outcome: 'refused', terminated: 0, held: true })
    expect(kinds()).not.toContain('terminate')
  })

  test('cuts again what came during the cut', async () => {
    const { clock, lb, policy } = lbWith({ removal: 'refuses' })
    lb.occupy(web1)
    const apply = lb.apply.bind(lb)
    lb.apply = async (changes, ctx) => {
      const results = await apply(changes, ctx)
      if (changes.some(({ kind }) => kind === 'terminate') && lb.load(web1) === 0 && more-- > 0)
        lb.occupy(web1)
      return results
    }
    let more = 2
    const report = await clock.runUntil(drain(lb, web1, policy))
    expect(only(report)).toMatchObject({ outcome: 'terminated', terminated: 3, phase: 'removed' })
  })

  test('says in the report what was left', async () => {
    const { clock, lb, policy } = lbWith({ removal: 'keeps' })
    lb.occupy(web1, 3)
    const { why } = only(await clock.runUntil(drain(lb, web1, policy)))
    expect(why.map(({ code, text }) => `${code}: ${text}`)).toEqual([
      'in-flight: it was taken out at the deadline, before it was proved idle: 3 in flight left to end by themselves',
    ])
  })

  test('is not made of a member that never was held', async () => {
    const { clock, lb, policy, kinds } = lbWith({ removal: 'cuts' })
    const waits = { ...policy, keepReady: 3, onMinimum: 'wait' } as const
    const error = await clock.runUntil(refusal(drain(lb, web1, waits)))
    expect(error.code).toBe('POOL_AT_MINIMUM')
    expect(kinds()).toEqual([])
  })

  test('is not made of a member that can not be read', async () => {
    const { clock, lb, policy, kinds } = lbWith({ removal: 'cuts' })
    lb.occupy(web1)
    const run = startDrain(lb, web1, policy)
    await clock.advance(5_000)
    lb.disconnect()
    const report = await clock.runUntil(run.done)
    expect(only(report)).toMatchObject({ outcome: 'unreachable', held: true })
    expect(kinds()).toEqual(['hold'])
    await run.release()
  })

  test('waits for its answer past the deadline', async () => {
    const { clock, lb, policy } = lbWith({ removal: 'keeps', lateBound: 30_000 })
    lb.occupy(web1)
    const apply = lb.apply.bind(lb)
    lb.apply = async (changes, ctx) => {
      if (changes.some(({ kind }) => kind === 'remove'))
        await new Promise<void>((resolve) => void clock.setTimeout(resolve, 20_000))
      return apply(changes, ctx)
    }
    const report = await clock.runUntil(drain(lb, web1, policy))
    expect(only(report)).toMatchObject({ outcome: 'removed', phase: 'removed' })
  })

  test('whose answer is lost counts what it may have cut', async () => {
    const { clock, lb, policy } = lbWith({ removal: 'cuts' })
    lb.occupy(web1, 2)
    const run = startDrain(lb, web1, policy)
    await clock.advance(29_000)
    lb.failNext('throw-after', { verb: 'apply' })
    const report = await clock.runUntil(run.done)
    expect(only(report)).toMatchObject({
      outcome: 'terminated',
      phase: 'removed',
      terminated: 2,
      terminatedAtMost: true,
    })
  })

  test('takes several members out in one call', async () => {
    const { clock, lb, policy } = lbWith({ removal: 'keeps' })
    lb.occupy(web1)
    lb.occupy(web2)
    await clock.runUntil(drain(lb, [web1, web2], { ...policy, keepReady: 0 }))
    const removals = lb.requests.filter(({ changes = [] }) =>
      changes.some(({ kind }) => kind === 'remove'),
    )
    expect(removals.map(({ changes }) => changes?.length)).toEqual([2])
  })
})

describe('after a restart', () => {
  test('a removal at the deadline goes on from its ticket', async () => {
    const { clock, lb, policy } = lbWith({ removal: 'cuts' })
    lb.occupy(web1)
    const run = startDrain(lb, web1, policy)
    await clock.advance(5_000)
    const ticket = JSON.parse(JSON.stringify(await run.ticket)) as Ticket
    await run.release()
    const resumed = resumeDrain(lb, ticket, { clock })
    const report = await clock.runUntil(resumed.done)
    expect(only(report)).toMatchObject({ outcome: 'terminated', terminated: 1, phase: 'removed' })
  })

  test('steps take it out at the deadline', async () => {
    const { clock, lb } = lbWith({ removal: 'refuses' })
    const base = Date.now() - clock.now()
    vi.spyOn(Date, 'now').mockImplementation(() => base + clock.now())
    lb.occupy(web1)
    let step = await stepped(lb, { target: web1, policy: AFTER_30_S }, { clock })
    for (let i = 0; i < 300 && step.outcome === undefined; i += 1) {
      await clock.advance(Math.max(1, step.againIn))
      step = await stepped(lb, JSON.parse(JSON.stringify(step.ticket)) as Ticket, { clock })
    }
    expect(step.outcome).toBe('terminated')
    expect(lb.state(web1)).toBe('gone')
  })
})

describe('its options', () => {
  test.each([
    ['without until', { onTimeout: 'remove' }],
    ['with until idle', { onTimeout: 'remove', until: 'idle' }],
  ] as const)('remove %s is refused, and both fields are named', async (_, policy: Policy) => {
    const { clock, lb } = setUp()
    const error = await refusal(drain(lb, web1, { clock, ...policy }))
    expect(error.code).toBe('INVALID_OPTIONS')
    expect(error.message).toMatch(/onTimeout: 'remove'.*until: 'removed'/)
  })

  test('a product that refuses removals at work and cuts nothing is refused', async () => {
    const { clock, lb, policy } = lbWith({ removal: 'refuses', terminate: false })
    const error = await clock.runUntil(refusal(drain(lb, web1, policy)))
    expect(error.code).toBe('UNSUPPORTED')
    expect(error.message).toMatch(/onTimeout: 'remove': this balancer removes no member/)
  })

  test.each([
    ['keeps', /what is left goes on to its end, and idle is not verified/],
    ['cuts', /what is left is cut/],
    ['refuses', /what is left is cut/],
    ['unknown', /what is left can be cut/],
  ] as const)('a plan says what becomes of work that a removal %s', async (removal, words) => {
    const { clock, lb, policy } = lbWith({ removal })
    const planned = await clock.runUntil(plan(lb, web1, policy))
    expect(planned.steps.map(({ reason }) => reason).join('\n')).toMatch(words)
  })
})
