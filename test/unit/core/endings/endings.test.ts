import { describe, expect, test } from 'vitest'
import { drain, DrainableError, isDrainableError, select, startDrain } from 'drainable'
import { only, recorder, setUp, thrown, web1 } from '../set-up.js'

describe('every end is told', () => {
  test('proceed continues with what is left', async () => {
    const { clock, lb } = setUp()
    lb.occupy(web1)
    const report = await clock.runUntil(
      drain(lb, web1, { clock, timeout: '2s', onTimeout: 'proceed' }),
    )
    expect(only(report)).toMatchObject({ outcome: 'proceeded', verifiedIdle: false })
    expect(only(report).why[0]?.code).toBe('in-flight')
  })

  test('proceed says of a balancer that was too slow that nothing was drained', async () => {
    const { clock, lb } = setUp()
    lb.failNext('hang')
    const waiting = { timeout: '2s', onTimeout: 'proceed', onUnreachable: 'wait' } as const
    const report = await clock.runUntil(drain(lb, web1, { clock, ...waiting }))
    expect(only(report)).toMatchObject({ ref: web1, outcome: 'proceeded', held: false })
    expect(only(report).why[0]?.text).toContain('this drain changed nothing')
  })

  test('terminate cuts what is left, under maint, and says how many', async () => {
    const { clock, lb } = setUp()
    lb.occupy(web1, 4)
    const seen = recorder()
    const report = await clock.runUntil(
      drain(lb, web1, { clock, timeout: '2s', onTimeout: 'terminate', onEvent: seen.onEvent }),
    )
    expect(only(report)).toMatchObject({ outcome: 'terminated', terminated: 4 })
    expect(lb.load(web1)).toBe(0)
    expect(lb.state(web1)).toBe('maint')
    expect(seen.of('terminated')).toEqual([expect.objectContaining({ count: 4 })])
  })

  test('a member that a reload has opened is not terminated', async () => {
    const { clock, lb } = setUp({ capabilities: { survivesReload: false } })
    const end = lb.occupy(web1)
    const run = startDrain(lb, web1, { clock, timeout: '5s', onTimeout: 'terminate' })
    await clock.advance(2_000)
    lb.failNext('throw', { verb: 'apply', times: 1_000 })
    end()
    lb.reload()
    const report = await clock.runUntil(run.done)
    expect(lb.state(web1)).toBe('ready')
    expect(only(report)).toMatchObject({ outcome: 'timeout', verifiedIdle: false })
    await run.release()
  })

  test('a drain idle before its deadline cuts nothing', async () => {
    const { clock, lb } = setUp()
    const report = await clock.runUntil(
      drain(lb, web1, { clock, timeout: '5s', onTimeout: 'terminate' }),
    )
    expect(only(report)).toMatchObject({ outcome: 'idle', terminated: 0 })
  })

  test('until removed takes the member out once idle', async () => {
    const { clock, lb } = setUp()
    const end = lb.occupy(web1)
    clock.setTimeout(end, 5_000)
    const report = await clock.runUntil(drain(lb, web1, { clock, until: 'removed' }))
    expect(only(report)).toMatchObject({ outcome: 'removed', phase: 'removed', verifiedIdle: true })
    expect(lb.state(web1)).toBe('gone')
  })

  test('a removal that is refused for now is tried again', async () => {
    const { clock, lb } = setUp()
    const apply = lb.apply.bind(lb)
    let refusals = 2
    lb.apply = (changes, ctx) => {
      if (changes.some((change) => change.kind === 'remove') && refusals-- > 0) {
        const error = new DrainableError('CONFLICT', 'still has connections')
        lb.failNext('reject', { verb: 'apply', error })
      }
      return apply(changes, ctx)
    }
    const report = await clock.runUntil(drain(lb, web1, { clock, until: 'removed' }))
    expect(only(report).outcome).toBe('removed')
  })

  test('a member that vanishes is gone, not idle', async () => {
    const { clock, lb } = setUp()
    lb.occupy(web1)
    const run = startDrain(lb, web1, { clock, timeout: '1m' })
    await clock.advance(2_000)
    lb.setBehind(web1, 'gone')
    const report = await clock.runUntil(run.done)
    expect(report.outcome === 'gone' || report.outcome === 'timeout').toBe(true)
    expect(only(report).verifiedIdle).toBe(false)
    await run.release()
  })

  test('another member under the same name is gone and left alone', async () => {
    const { clock, lb } = setUp()
    lb.occupy(web1)
    const run = startDrain(lb, web1, { clock, timeout: '1m' })
    await clock.advance(2_000)
    lb.setIdentity(web1, 'another')
    lb.setBehind(web1, 'ready')
    const error = await thrown(
      clock.runUntil(
        run.done.then((r) => (r.outcome === 'gone' ? Promise.reject(new Error('gone')) : r)),
      ),
    )
    expect((error as Error).message).toBe('gone')
    expect(lb.state(web1)).toBe('ready')
    await run.release()
  })

  test('a member that another client sets ready is overruled', async () => {
    const { clock, lb } = setUp()
    lb.occupy(web1)
    const seen = recorder()
    const run = drain(lb, web1, { clock, timeout: '1m', onEvent: seen.onEvent })
    const caught = thrown(run)
    await clock.advance(2_000)
    lb.setBehind(web1, 'ready')
    const error = await clock.runUntil(caught)
    expect(isDrainableError(error, 'DRAIN_OVERRULED')).toBe(true)
    expect(seen.of('overruled')).toEqual([
      expect.objectContaining({ expected: 'drain', found: 'ready', reset: false }),
    ])
    expect(lb.state(web1)).toBe('ready')
  })

  /** Another client opens the member again and again, and the drain puts it back. */
  async function reapplied() {
    const { clock, lb } = setUp()
    lb.occupy(web1)
    const seen = recorder()
    const run = startDrain(lb, web1, {
      clock,
      timeout: '10m',
      onOverrule: 'reapply',
      onEvent: seen.onEvent,
    })
    for (let i = 0; i < 4; i += 1) {
      await clock.advance(10_000)
      lb.setBehind(web1, 'ready')
    }
    const report = await clock.runUntil(run.done)
    await run.release()
    return { report, resets: seen.of('overruled').map((event) => event.reset) }
  }

  test('reapply puts the member back three times, then gives in', async () => {
    const { report, resets } = await reapplied()
    expect(report.outcome).toBe('overruled')
    expect(resets).toEqual([true, true, true, false])
  })

  test('a reapply that has given in does not advise reapply', async () => {
    const { report } = await reapplied()
    const { error, why } = only(report)
    expect(error?.message).toMatch(/the drain was put back 3 times$/)
    expect(why.map(({ hint }) => hint)).not.toContainEqual(expect.stringContaining('reapply'))
  })

  test('a balancer that does not answer until the deadline is unreachable', async () => {
    const { clock, lb } = setUp()
    lb.occupy(web1)
    const run = startDrain(lb, web1, { clock, timeout: '20s' })
    await clock.advance(2_000)
    lb.disconnect()
    const report = await clock.runUntil(run.done)
    expect(report.outcome).toBe('unreachable')
    expect(only(report).error?.code).toBe('UNREACHABLE')
    await run.release()
  })

  test('a balancer that freezes does not delay the end', async () => {
    const { clock, lb } = setUp()
    lb.occupy(web1)
    const run = startDrain(lb, web1, { clock, timeout: '20s' })
    await clock.advance(2_000)
    lb.failNext('hang', { verb: 'observe', times: 1_000 })
    const report = await clock.runUntil(run.done)
    expect(report.outcome).toBe('unreachable')
    expect(report.elapsed).toBeLessThan(23_000)
    await run.release()
  })

  test('an unreachable balancer at the start is an error at once', async () => {
    const { clock, lb } = setUp()
    lb.disconnect()
    expect(await clock.runUntil(thrown(drain(lb, web1, { clock })))).toMatchObject({
      code: 'UNREACHABLE',
    })
    expect(lb.requests.filter((call) => call.verb === 'apply')).toEqual([])
  })

  test('an unknown member or pool is NOT_FOUND, with nothing changed', async () => {
    const { clock, lb } = setUp()
    const nobody = [
      { pool: 'web', member: 'web9' },
      { pool: 'nope', member: 'web1' },
      { pool: 'nope' },
      { address: '203.0.113.9' },
    ]
    for (const target of nobody) {
      expect(await clock.runUntil(thrown(drain(lb, target, { clock })))).toMatchObject({
        code: 'NOT_FOUND',
      })
      if ('address' in target)
        expect(await clock.runUntil(select(lb, target, { clock }))).toEqual([])
      else
        expect(await clock.runUntil(thrown(select(lb, target, { clock })))).toMatchObject({
          code: 'NOT_FOUND',
        })
    }
    expect(lb.requests.filter((call) => call.verb === 'apply')).toEqual([])
  })

  test('an address hits every pool it is in', async () => {
    const { clock, lb } = setUp({ pools: { a: ['x', 'y'], b: ['z'] } })
    const [x] = await clock.runUntil(select(lb, { pool: 'a', member: 'x' }, { clock }))
    if (x?.present !== true) throw new Error('x is there')
    const hits = await clock.runUntil(select(lb, { address: x.address!, port: x.port! }, { clock }))
    expect(hits.map((reading) => reading.ref)).toContainEqual({ pool: 'a', member: 'x' })
    const mapped = { address: `::FFFF:${x.address!}`, port: x.port! }
    expect(await clock.runUntil(select(lb, mapped, { clock }))).toEqual(hits)
  })

  test('a refusal ends the drain as refused, with its code', async () => {
    const { clock, lb } = setUp()
    lb.failNext('reject', { verb: 'apply' })
    const error = await clock.runUntil(thrown(drain(lb, web1, { clock })))
    expect(isDrainableError(error)).toBe(true)
    expect(isDrainableError(error) && error.report?.outcome).toBe('refused')
    expect(lb.state(web1)).toBe('ready')
  })

  test('an abort leaves the member drained, and no timer', async () => {
    const { clock, lb } = setUp()
    lb.occupy(web1)
    const stop = new AbortController()
    const reason = new Error('enough')
    const caught = thrown(drain(lb, web1, { clock, signal: stop.signal }))
    await clock.advance(2_000)
    stop.abort(reason)
    expect(await caught).toBe(reason)
    expect(lb.state(web1)).toBe('drain')
    expect(clock.pending).toBe(0)
  })

  test('an abort with restore rejects after the undo', async () => {
    const { clock, lb } = setUp()
    lb.occupy(web1)
    const stop = new AbortController()
    const caught = thrown(drain(lb, web1, { clock, signal: stop.signal, onAbort: 'restore' }))
    await clock.advance(2_000)
    stop.abort(new Error('enough'))
    expect(await clock.runUntil(caught)).toMatchObject({ message: 'enough' })
    expect(lb.state(web1)).toBe('ready')
    expect(clock.pending).toBe(0)
  })

  test('an abort before the start changes nothing', async () => {
    const { clock, lb } = setUp()
    const caught = thrown(drain(lb, web1, { clock, signal: AbortSignal.abort('no') }))
    expect(await caught).toBe('no')
    expect(lb.requests).toEqual([])
  })

  test('the iterator ends with end, and done is resolved by then', async () => {
    const { clock, lb } = setUp()
    const run = startDrain(lb, web1, { clock })
    const types: string[] = []
    const reading = (async () => {
      for await (const event of run) types.push(event.type)
    })()
    await clock.runUntil(reading)
    expect(types.at(-1)).toBe('end')
    expect(types).toContain('load')
    expect((await run.done).outcome).toBe('idle')
    await run.release()
  })

  test('the action runs while the drain is held through a reload', async () => {
    const { clock, lb } = setUp()
    const states: string[] = []
    const result = await clock.runUntil(
      drain(lb, web1, { clock }, async () => {
        lb.reload()
        states.push(lb.state(web1))
        await new Promise<void>((resolve) => clock.setTimeout(resolve, 1_000))
        states.push(lb.state(web1))
        return 42
      }),
    )
    expect(result).toBe(42)
    expect(states).toEqual(['ready', 'maint'])
    expect(clock.pending).toBe(0)
  })

  test('a hold carried out without an answer is not sent twice', async () => {
    const { clock, lb } = setUp({ capabilities: { lateBound: 1_000 } })
    lb.failNext('throw-after', { verb: 'apply' })
    const report = await clock.runUntil(drain(lb, web1, { clock, seal: false, timeout: '20s' }))
    expect(report.outcome).toBe('idle')
    expect(lb.requests.filter((call) => call.verb === 'apply')).toHaveLength(1)
  })

  test('a provider closed in mid-drain ends the drain and leaves no timer', async () => {
    const { clock, lb } = setUp()
    lb.occupy(web1)
    const run = startDrain(lb, web1, { clock, timeout: Infinity })
    await clock.advance(5_000)
    await lb.close()
    expect((await clock.runUntil(run.done)).outcome).toBe('unreachable')
    expect(clock.pending).toBe(0)
  })

  test('escalateAfter keeps persistent clients out after a while', async () => {
    const { clock, lb } = setUp()
    const run = startDrain(lb, web1, { clock, timeout: '10m', escalateAfter: '30s' })
    for (let i = 0; i < 80 && lb.state(web1) !== 'maint'; i += 1) {
      await clock.advance(500)
      if (lb.state(web1) === 'drain') lb.arrive(web1)
    }
    const report = await clock.runUntil(run.done)
    expect(report.outcome).toBe('idle')
    expect(report.elapsed).toBeGreaterThanOrEqual(30_000)
    expect(report.elapsed).toBeLessThan(33_000)
    await run.release()
  })
})

describe('bad input', () => {
  const bad: readonly [string, object, RegExp][] = [
    ['an unknown key', { timeuot: '30s' }, /timeuot/],
    ['seconds as a bare number', { timeout: 30 }, /timeout.*30s/],
    ['a wrong unit', { timeout: '30 sec' }, /timeout.*'30s'/],
    ['a negative duration', { settle: -1 }, /settle/],
    ['a word that is none', { onTimeout: 'kill' }, /onTimeout/],
    ['a timeout too short to prove anything', { timeout: '500ms' }, /timeout.*at least 1 s/],
    ['a floor that is no number', { keepReady: -1 }, /keepReady/],
  ]
  test.each(bad)('%s is refused by name before anything is sent', async (_, policy, words) => {
    const { clock, lb } = setUp()
    const error = await clock.runUntil(thrown(drain(lb, web1, { clock, ...policy })))
    expect(error).toMatchObject({ code: 'INVALID_OPTIONS' })
    expect((error as Error).message).toMatch(words)
    expect(lb.requests.filter((call) => call.verb === 'apply')).toEqual([])
  })

  test('what the product can not do is refused, or left out on request', async () => {
    const { clock, lb } = setUp({
      capabilities: { ladder: ['ready', 'drain'], maint: 'none', remove: false },
    })
    for (const policy of [
      { hold: 'maint' },
      { seal: true },
      { until: 'removed' },
      { escalateAfter: '1m' },
    ] as const) {
      expect(await clock.runUntil(thrown(drain(lb, web1, { clock, ...policy })))).toMatchObject({
        code: 'UNSUPPORTED',
      })
    }
    const report = await clock.runUntil(
      drain(lb, web1, { clock, until: 'removed', ifUnsupported: 'proceed' }),
    )
    expect(only(report)).toMatchObject({ outcome: 'idle', sealed: false })
  })

  test('maint that cuts must be asked for', async () => {
    const { clock, lb } = setUp({ capabilities: { maint: 'cuts' } })
    expect(await clock.runUntil(thrown(drain(lb, web1, { clock, hold: 'maint' })))).toMatchObject({
      code: 'UNSUPPORTED',
    })
    const report = await clock.runUntil(drain(lb, web1, { clock }))
    expect(only(report)).toMatchObject({ outcome: 'idle', sealed: false })
    expect(lb.state(web1)).toBe('drain')
  })
})
