import { afterEach, describe, expect, test } from 'vitest'
import {
  DrainableError,
  drain,
  ready,
  startDrain,
  watch,
  withEvents,
  type ErrorCode,
  type Why,
} from 'drainable'
import type { Change, ChangeResult } from 'drainable/provider'
import { fakeProvider, type FakeProvider } from 'drainable/testing'
import { only, recorder, thrown, web1 } from '../set-up.js'
import { stepped } from '../stepped.js'
import { balancer, json, restoreWall, sendThrough, steps, wallFollows } from '../balancer.js'

afterEach(restoreWall)

/** Refuses the changes that match, as values; the others go through. */
function refuse(
  lb: FakeProvider,
  matches: (change: Change) => boolean,
  error: DrainableError,
  times = Infinity,
): void {
  let left = times
  sendThrough(lb, async (changes, ctx, apply) => {
    const results: ChangeResult[] = []
    for (const change of changes) {
      if (matches(change) && left > 0) {
        left -= 1
        results.push({ ref: change.ref, status: 'rejected', error })
        await apply([], ctx)
      } else results.push((await apply([change], ctx))[0]!)
    }
    return results
  })
}

const busy = new DrainableError('CONFLICT', 'the device says "a sync is under way"')
const denied = new DrainableError('FORBIDDEN', 'the device says "user ops may not do that"')
const isHold = ({ kind }: Change): boolean => kind === 'hold'
const isMaint = (change: Change): boolean => change.kind === 'hold' && change.to === 'maint'
const isRemoval = ({ kind }: Change): boolean => kind === 'remove'
const isRestore = ({ kind }: Change): boolean => kind === 'restore'

// Fault 15: the last refusal of our own change comes first in why() and is the error at the end.
describe('a refusal that is tried again', () => {
  test('of the first hold comes first in why()', async () => {
    const { clock, lb } = balancer()
    refuse(lb, isHold, busy)
    const run = startDrain(lb, web1, { clock, timeout: '1m' })
    await clock.advance(5_000)
    const [first] = run.why()
    await run.release()
    expect(first?.code).toBe('refused')
    expect(first?.text).toContain('a sync is under way')
  })

  test('is said to be tried again until the drain has ended', async () => {
    const { clock, lb } = balancer()
    refuse(lb, isHold, new DrainableError('NOT_FOUND', 'no such server (it is being reloaded)'))
    const run = startDrain(lb, web1, { clock, timeout: '10s' })
    await clock.advance(5_000)
    expect(run.why()[0]).toMatchObject({ code: 'refused', hint: 'it is tried again' })
    const report = only(await clock.runUntil(run.done))
    await run.release()
    expect(report.outcome).toBe('refused')
    expect(report.why[0]).toMatchObject({ code: 'refused', hint: 'it is not tried again' })
  })

  test('comes first in the load events', async () => {
    const { clock, lb } = balancer()
    lb.occupy(web1)
    refuse(lb, isHold, busy)
    const seen = recorder()
    const run = startDrain(lb, web1, { clock, timeout: '1m', onEvent: seen.onEvent })
    await clock.advance(5_000)
    await run.release()
    expect(seen.of('load').at(-1)?.why[0]?.code).toBe('refused')
  })

  test('comes first in the why of a step', async () => {
    const { clock, lb } = balancer()
    wallFollows(clock)
    refuse(lb, isHold, busy)
    const first = await stepped(lb, { target: web1 }, { clock })
    await clock.advance(1)
    const second = await stepped(lb, json(first.ticket), { clock })
    expect(second.why[0]?.code).toBe('refused')
    expect(second.why[0]?.text).toContain('a sync is under way')
  })

  test.each<[string, (change: Change) => boolean, object]>([
    ['first hold', isHold, {}],
    ['escalation', isMaint, { escalateAfter: '2s' }],
    ['removal', isRemoval, { until: 'removed' }],
    ['cut', ({ kind }) => kind === 'terminate', { onTimeout: 'terminate' }],
  ])('of the %s is the error of the member at the end', async (what, matches, policy) => {
    const { clock, lb } = balancer()
    if (what !== 'removal') lb.occupy(web1)
    refuse(lb, matches, busy)
    const run = startDrain(lb, web1, { clock, timeout: '10s', ...policy })
    const report = await clock.runUntil(run.done)
    await run.release()
    expect(only(report).error).toMatchObject({ code: 'CONFLICT', message: busy.message })
    expect(only(report).why[0]?.code).toBe('refused')
  })

  test('of a put-back is the error of the member at the end', async () => {
    const { clock, lb } = balancer()
    lb.occupy(web1)
    const run = startDrain(lb, web1, { clock, timeout: '20s' })
    await clock.advance(2_000)
    refuse(lb, isHold, busy)
    lb.reload()
    const report = await clock.runUntil(run.done)
    await run.release()
    expect(only(report).error).toMatchObject({ code: 'CONFLICT', message: busy.message })
  })

  test('is what drain() rejects with at the deadline', async () => {
    const { clock, lb } = balancer()
    refuse(lb, isHold, busy)
    const error = await clock.runUntil(thrown(drain(lb, web1, { clock, timeout: '10s' })))
    expect(error).toMatchObject({ code: 'CONFLICT', message: busy.message })
  })

  // What must stay true.
  test('leaves no trace once the change is made', async () => {
    const { clock, lb } = balancer()
    refuse(lb, isHold, busy, 2)
    const run = startDrain(lb, web1, { clock })
    const report = await clock.runUntil(run.done)
    const why = run.why()
    await run.release()
    expect(only(report)).toMatchObject({ outcome: 'idle', why: [] })
    expect(only(report).error).toBeUndefined()
    expect(why).toEqual([])
  })

  test('of the seal keeps the verdict', async () => {
    const { clock, lb } = balancer()
    refuse(lb, isMaint, denied)
    const report = await clock.runUntil(drain(lb, web1, { clock }))
    expect(only(report)).toMatchObject({ outcome: 'idle', verifiedIdle: true, sealed: false })
  })
})

// Fault 15: retryable: false is not tried again, but for a NOT_FOUND that the next look contradicts.
describe('a refusal for good', () => {
  const conflict = new DrainableError('CONFLICT', 'it is "deleted"', { retryable: false })

  test('of the first hold ends the drain, whatever its code', async () => {
    const { clock, lb } = balancer()
    refuse(lb, isHold, conflict)
    const run = startDrain(lb, web1, { clock, timeout: '1m' })
    const report = await clock.runUntil(run.done)
    await run.release()
    expect(only(report)).toMatchObject({ outcome: 'refused', error: { code: 'CONFLICT' } })
    expect(report.elapsed).toBeLessThan(1_000)
  })

  test('of a removal ends the drain, whatever its code', async () => {
    const { clock, lb } = balancer()
    let asked = 0
    refuse(lb, (change) => isRemoval(change) && ++asked > 0, conflict)
    const run = startDrain(lb, web1, { clock, timeout: '1m', until: 'removed' })
    const report = await clock.runUntil(run.done)
    await run.release()
    expect(only(report)).toMatchObject({ outcome: 'refused', error: { code: 'CONFLICT' } })
    expect(asked).toBe(1)
  })

  test('of a put-back ends the drain', async () => {
    const { clock, lb } = balancer()
    lb.occupy(web1)
    const run = startDrain(lb, web1, { clock, timeout: '1m' })
    await clock.advance(2_000)
    let asked = 0
    refuse(lb, (change) => isHold(change) && ++asked > 0, denied)
    lb.reload()
    const report = only(await clock.runUntil(run.done))
    await run.release()
    expect(asked).toBe(1)
    expect(report).toMatchObject({ outcome: 'refused', error: { code: 'FORBIDDEN' } })
  })

  test('a NOT_FOUND that the next look contradicts is tried again by ready()', async () => {
    const { clock, lb } = balancer()
    lb.setBehind(web1, 'drain')
    const error = new DrainableError('NOT_FOUND', 'no such server (it is being reloaded)')
    refuse(lb, isRestore, error, 1)
    await clock.runUntil(ready(lb, web1, { clock }))
    expect(lb.state(web1)).toBe('ready')
  })

  // What must stay true.
  test('a NOT_FOUND that the next look contradicts is tried again', async () => {
    const { clock, lb } = balancer()
    refuse(lb, isHold, new DrainableError('NOT_FOUND', 'no such server'), 1)
    expect((await clock.runUntil(drain(lb, web1, { clock }))).outcome).toBe('idle')
  })

  test('a NOT_FOUND that the next looks confirm ends as gone', async () => {
    const { clock, lb } = balancer()
    sendThrough(lb, (changes, ctx, apply) => {
      lb.setBehind(web1, 'gone')
      return apply(changes, ctx)
    })
    const run = startDrain(lb, web1, { clock, timeout: '1m' })
    const report = await clock.runUntil(run.done)
    await run.release()
    expect(only(report).outcome).toBe('gone')
  })

  test('a refusal that calls itself retryable is tried again', async () => {
    const { clock, lb } = balancer()
    const error = new DrainableError('REJECTED', 'too busy', { retryable: true })
    refuse(lb, isHold, error, 2)
    expect((await clock.runUntil(drain(lb, web1, { clock }))).outcome).toBe('idle')
  })

  test.each<ErrorCode>(['FORBIDDEN', 'REJECTED', 'UNSUPPORTED'])(
    '%s of the first hold ends the drain at once',
    async (code) => {
      const { clock, lb } = balancer()
      let asked = 0
      refuse(lb, (change) => isHold(change) && ++asked > 0, new DrainableError(code, 'no'))
      const run = startDrain(lb, web1, { clock, timeout: '1m' })
      expect(only(await clock.runUntil(run.done))).toMatchObject({ outcome: 'refused' })
      expect(asked).toBe(1)
    },
  )
})

function codes(list: readonly Why[]): readonly string[] {
  return list.map(({ code }) => code)
}

// Fault 15: no client is blamed before a look asked for after our own change shows it.
describe('"set so by another client"', () => {
  test('is not said of our own seal before the next look', async () => {
    const { clock, lb } = balancer({ latency: 50 })
    const run = startDrain(lb, web1, { clock })
    const said: string[] = []
    for (let ms = 0; ms < 3_000; ms += 10) {
      await clock.advance(10)
      said.push(...codes(run.why()))
    }
    const sealed = lb.state(web1)
    await run.release()
    expect(sealed).toBe('maint')
    expect(said).not.toContain('overruled')
  })

  test('is not said of our own put-back before the next look', async () => {
    const { clock, lb } = balancer({ latency: 50 })
    lb.occupy(web1)
    const run = startDrain(lb, web1, { clock, timeout: '1m' })
    await clock.advance(2_000)
    lb.reload()
    const said: string[] = []
    for (let ms = 0; ms < 2_000; ms += 10) {
      await clock.advance(10)
      said.push(...codes(run.why()))
    }
    const held = lb.state(web1)
    await run.release()
    expect(held).toBe('drain')
    expect(said).not.toContain('overruled')
  })

  test('is said in no step of a drain that no other client touches', async () => {
    const { clock, lb } = balancer()
    wallFollows(clock)
    const done = await steps(lb, clock, { target: web1 })
    expect(done.at(-1)?.outcome).toBe('idle')
    expect(done.flatMap(({ why }) => codes(why))).not.toContain('overruled')
  })

  test('is not told to a monitor after our own ready()', async () => {
    // The monitor looks by the real clock, and so does this drain.
    const lb = withEvents(
      fakeProvider({ pools: { web: ['web1', 'web2'] }, instance: 'answers-monitor' }),
    )
    const said: string[] = []
    const met = Promise.withResolvers<undefined>()
    const opened = Promise.withResolvers<undefined>()
    lb.on('load', ({ why, active }) => {
      said.push(...codes(why))
      if (active === 1) met.resolve(undefined)
    })
    lb.on('phase', ({ to }) => {
      if (to === 'active') opened.resolve(undefined)
    })
    await drain(lb, web1, { settle: 0, seal: false })
    lb.occupy(web1)
    await met.promise // the monitor has taken the member over
    await ready(lb, web1)
    await opened.promise
    await lb.close()
    expect(lb.state(web1)).toBe('ready')
    expect(said).not.toContain('overruled')
  })

  test('is not said by watch() after our own ready()', async () => {
    const { clock, lb } = balancer()
    const seen = recorder()
    const look = watch(lb, web1, { clock, onEvent: seen.onEvent })
    await clock.runUntil(drain(lb, web1, { clock }))
    await clock.advance(2_000)
    await clock.runUntil(ready(lb, web1, { clock }))
    await clock.advance(5_000)
    const why = look.why()
    await look.close()
    expect(seen.of('load').flatMap((event) => codes(event.why))).not.toContain('overruled')
    expect(codes(why)).not.toContain('overruled')
    expect(seen.of('phase').at(-1)?.to).toBe('active')
  })

  // What must stay true.
  test('is said if a later look shows it', async () => {
    const { clock, lb } = balancer()
    lb.occupy(web1)
    const run = startDrain(lb, web1, { clock, timeout: '1m', onOverrule: 'reapply' })
    await clock.advance(2_000)
    lb.setBehind(web1, 'ready')
    await clock.advance(150)
    const why = codes(run.why())
    await run.release()
    expect(why).toContain('overruled')
  })
})

// Fault 15: a success carries no reason for a failure.
describe('a success has no stale reason in why()', () => {
  test('after a removal that was refused at first', async () => {
    const { clock, lb } = balancer()
    refuse(lb, isRemoval, busy, 2)
    const run = startDrain(lb, web1, { clock, until: 'removed' })
    const report = await clock.runUntil(run.done)
    const why = run.why()
    await run.release()
    expect(only(report)).toMatchObject({ outcome: 'removed', why: [] })
    expect(only(report).error).toBeUndefined()
    expect(why).toEqual([])
  })

  test('after a removal with persistent clients', async () => {
    const { clock, lb } = balancer()
    const run = startDrain(lb, web1, { clock, timeout: '1m', until: 'removed', seal: false })
    for (let i = 0; i < 5; i += 1) {
      await clock.advance(500)
      lb.arrive(web1)
    }
    const report = await clock.runUntil(run.done)
    await run.release()
    expect(only(report)).toMatchObject({ outcome: 'removed', why: [] })
  })

  test('after a cut', async () => {
    const { clock, lb } = balancer()
    lb.occupy(web1, 2)
    const run = startDrain(lb, web1, { clock, timeout: '3s', onTimeout: 'terminate' })
    const report = await clock.runUntil(run.done)
    await run.release()
    expect(only(report)).toMatchObject({ outcome: 'terminated', terminated: 2, why: [] })
  })

  test('after a restore', async () => {
    const { clock, lb } = balancer()
    lb.occupy(web1)
    const run = startDrain(lb, web1, { clock, timeout: '1m' })
    await clock.advance(2_000)
    const report = await clock.runUntil(run.restore())
    expect(only(report)).toMatchObject({ outcome: 'restored', why: [] })
  })
})
