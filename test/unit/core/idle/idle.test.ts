import { describe, expect, test } from 'vitest'
import { drain, startDrain, type Snapshot } from 'drainable'
import { only, recorder, setUp, web1 } from '../set-up.js'

describe('idle is never said too early', () => {
  test('queued requests hold the drain', async () => {
    const { clock, lb } = setUp()
    const served = lb.queue(web1, 2)
    const run = startDrain(lb, web1, { clock, timeout: '10m' })
    await clock.advance(30_000)
    expect(run.report().members[0]?.phase).toBe('draining')
    expect(run.why()[0]).toMatchObject({ code: 'queued', count: 2 })
    served()
    expect((await clock.runUntil(run.done)).outcome).toBe('idle')
    await run.release()
  })

  test('sticky traffic between the looks is never idle, and why() names it', async () => {
    const { clock, lb } = setUp()
    const run = startDrain(lb, web1, { clock, timeout: '1m', settle: '1s' })
    for (let i = 0; i < 120; i += 1) {
      await clock.advance(500)
      lb.arrive(web1)
    }
    const report = await clock.runUntil(run.done)
    expect(report.outcome).toBe('timeout')
    expect(only(report).verifiedIdle).toBe(false)
    expect(only(report).why[0]?.code).toBe('persistence')
    await run.release()
  })

  test.each([
    ['nothing', {}, 'use escalateAfter'],
    ['an escalation to come', { escalateAfter: '5m' }, 'escalateAfter sends them elsewhere, in 4'],
    ['one that was carried out', { escalateAfter: '20s' }, 'it was raised to maint'],
    ['maint', { hold: 'maint' }, 'it is in maint'],
  ] as const)(
    'persistent clients are answered by what was asked for: %s',
    async (_, more, hint) => {
      const { clock, lb } = setUp()
      const run = startDrain(lb, web1, { clock, timeout: '10m', ...more })
      for (let i = 0; i < 60; i += 1) {
        await clock.advance(500)
        lb.arrive(web1)
      }
      const why = run.why().find(({ code }) => code === 'persistence')
      expect(why?.hint).toContain(hint)
      await clock.runUntil(run.restore())
    },
  )

  test('blind time is waited for, whatever settle says', async () => {
    const { clock, lb } = setUp({ capabilities: { blind: 1_100 } })
    const report = await clock.runUntil(drain(lb, web1, { clock, settle: '0ms' }))
    expect(report.elapsed).toBeGreaterThanOrEqual(1_100)
    expect(report.elapsed).toBeLessThan(1_300)
  })

  test('stale counts need a second sample that far apart', async () => {
    const { clock, lb } = setUp({ capabilities: { freshness: 4_000 } })
    const report = await clock.runUntil(drain(lb, web1, { clock, settle: '0ms' }))
    expect(report.elapsed).toBeGreaterThanOrEqual(4_000)
    const [first, last] = only(report).proof!.samples
    expect(last!.scopes[0]!.sampledAt - first!.scopes[0]!.sampledAt).toBeGreaterThanOrEqual(4_000)
  })

  test('an unread process keeps the member from idle, and is named', async () => {
    const { clock, lb } = setUp()
    lb.setScopes(['worker', { scope: 'old', state: 'unread', old: true }])
    const run = startDrain(lb, web1, { clock, timeout: '1m' })
    await clock.advance(30_000)
    expect(run.why()).toContainEqual(expect.objectContaining({ code: 'unreadable', scope: 'old' }))
    lb.setScopes(['worker'])
    expect((await clock.runUntil(run.done)).outcome).toBe('idle')
    await run.release()
  })

  test.each([
    [true, 'If it never does, end it yourself'],
    [false, 'make it readable'],
  ])('the way out of an unread process is named, old: %s', async (old, way) => {
    const { clock, lb } = setUp()
    lb.setScopes(['worker', { scope: 'silent', state: 'unread', old }])
    const run = startDrain(lb, web1, { clock, timeout: '1m' })
    await clock.advance(30_000)
    const [reason] = run.why()
    expect(reason).toMatchObject({ code: 'unreadable', scope: 'silent' })
    expect(reason!.hint).toContain(way)
    lb.setScopes(['worker'])
    expect((await clock.runUntil(run.done)).outcome).toBe('idle')
    await run.release()
  })

  test('a process without the drain keeps the member from idle', async () => {
    const { clock, lb } = setUp()
    lb.setScopes(['worker', { scope: 'other', inForce: false }])
    const run = startDrain(lb, web1, { clock, timeout: '20s' })
    await clock.advance(10_000)
    expect(run.why()).toContainEqual(
      expect.objectContaining({ code: 'not-in-force', scope: 'other' }),
    )
    lb.setScopes(['worker', 'other'])
    const report = await clock.runUntil(run.done)
    expect(report.outcome).toBe('idle')
    expect(report.elapsed).toBeGreaterThanOrEqual(11_000)
    await run.release()
  })

  test('a process that ended with work is lost, and idle is not verified', async () => {
    const { clock, lb } = setUp()
    lb.setScopes(['worker', 'second'])
    lb.occupy(web1, 3, 'second')
    const run = startDrain(lb, web1, { clock, timeout: '1m' })
    await clock.advance(5_000)
    lb.setScopes(['worker'])
    const member = only(await clock.runUntil(run.done))
    expect(member).toMatchObject({ outcome: 'idle', verifiedIdle: false })
    expect(member.lost).toEqual([expect.objectContaining({ scope: 'second', active: 3 })])
    expect(member.why[0]).toMatchObject({ code: 'old-scope', count: 3 })
    await run.release()
  })

  test('a drain is put back after a reload, and the old process waited for', async () => {
    const { clock, lb } = setUp()
    const end = lb.occupy(web1)
    lb.occupy({ pool: 'web', member: 'web2' }) // keeps the old process alive for longer
    const seen = recorder()
    const run = startDrain(lb, web1, { clock, timeout: '10m', onEvent: seen.onEvent })
    await clock.advance(2_000)
    lb.reload()
    expect(lb.state(web1)).toBe('ready')
    await clock.advance(2_000)
    expect(lb.state(web1)).toBe('drain')
    expect(seen.of('overruled')).toEqual([])
    expect(run.why().map((why) => why.code)).toContain('old-scope')
    end()
    const report = await clock.runUntil(run.done)
    expect(only(report)).toMatchObject({ outcome: 'idle', verifiedIdle: true, lost: [] })
    await run.release()
  })

  test('work that arrives before the seal undoes the verdict', async () => {
    const { clock, lb } = setUp({ latency: 5 })
    const seen = recorder()
    const run = startDrain(lb, web1, { clock, timeout: '1m', onEvent: seen.onEvent })
    let slipped = 0
    const apply = lb.apply.bind(lb)
    lb.apply = (changes, ctx) => {
      const seal = changes.some((change) => change.kind === 'hold' && change.to === 'maint')
      if (seal && slipped++ === 0) lb.arrive(web1)
      return apply(changes, ctx)
    }
    const report = await clock.runUntil(run.done)
    expect(slipped).toBe(1)
    expect(only(report)).toMatchObject({ outcome: 'idle', sealed: true, verifiedIdle: true })
    expect(report.elapsed).toBeGreaterThan(2_000)
    expect(seen.of('idle')).toHaveLength(1)
    await run.release()
  })

  test('counts older than the seal do not prove what was before it', async () => {
    const STALE = 4_000
    const { clock, lb } = setUp({ capabilities: { freshness: STALE } })
    const seen = recorder()
    const past: { at: number; snapshot: Snapshot }[] = []
    const observe = lb.observe.bind(lb)
    lb.observe = async (refs, ctx) => {
      const snapshot = await observe(refs, ctx)
      past.push({ at: clock.now(), snapshot })
      const old = past.findLast(({ at }) => at <= clock.now() - STALE) ?? past[0]!
      return {
        ...snapshot,
        readings: snapshot.readings.map((reading, i) => ({
          ...reading,
          scopes: old.snapshot.readings[i]!.scopes.map((scope) => ({
            ...scope,
            sampledAt: clock.now() - STALE,
          })),
        })),
      }
    }
    const apply = lb.apply.bind(lb)
    let slip = true
    lb.apply = (changes, ctx) => {
      const seal = changes.some((change) => change.kind === 'hold' && change.to === 'maint')
      if (seal && slip) clock.setTimeout(lb.occupy(web1), 20_000)
      if (seal) slip = false
      return apply(changes, ctx)
    }
    const run = startDrain(lb, web1, {
      clock,
      timeout: '10m',
      onEvent: (event) => {
        seen.onEvent(event)
        if (event.type === 'idle') expect(lb.load(web1)).toBe(0)
      },
    })
    const report = await clock.runUntil(run.done)
    expect(slip).toBe(false)
    expect(only(report)).toMatchObject({ outcome: 'idle', verifiedIdle: true })
    expect(report.elapsed).toBeGreaterThan(20_000)
    await run.release()
  })

  test('a refused seal is a fault, and idle is said unsealed', async () => {
    const { clock, lb } = setUp()
    const seen = recorder()
    const apply = lb.apply.bind(lb)
    lb.apply = (changes, ctx) => {
      if (changes.some((change) => change.kind === 'hold' && change.to === 'maint')) {
        lb.failNext('reject', { verb: 'apply' })
      }
      return apply(changes, ctx)
    }
    const member = only(await clock.runUntil(drain(lb, web1, { clock, onEvent: seen.onEvent })))
    expect(member).toMatchObject({ outcome: 'idle', sealed: false, verifiedIdle: true })
    expect(seen.of('fault')).toHaveLength(1)
    expect(lb.state(web1)).toBe('drain')
  })

  test('without arrivals every sample of three seconds must be zero', async () => {
    const { clock, lb } = setUp()
    const observe = lb.observe.bind(lb)
    lb.observe = async (refs, ctx) => {
      const snapshot = await observe(refs, ctx)
      return {
        ...snapshot,
        readings: snapshot.readings.map((reading) => ({
          ...reading,
          scopes: reading.scopes.map((scope) => {
            const { scope: name, incarnation, state, sampledAt, active, queued } = scope
            return { scope: name, incarnation, state, sampledAt, active, queued }
          }),
        })),
      }
    }
    const report = await clock.runUntil(drain(lb, web1, { clock, settle: '0ms' }))
    expect(report.elapsed).toBeGreaterThanOrEqual(3_000)
    expect(only(report).proof?.arrivals).toBe('unknown')
  })

  test('a product without counts ends by its own word, unverified', async () => {
    const { clock, lb } = setUp({ capabilities: { counts: 'none' } })
    lb.setScopes([{ scope: 'worker', released: true }])
    const member = only(await clock.runUntil(drain(lb, web1, { clock })))
    expect(member).toMatchObject({ outcome: 'idle', verifiedIdle: false })
  })

  test('a product without counts that never releases ends by time', async () => {
    const { clock, lb } = setUp({ capabilities: { counts: 'none' } })
    const run = startDrain(lb, web1, { clock, timeout: '20s' })
    const report = await clock.runUntil(run.done)
    expect(report.outcome).toBe('timeout')
    expect(only(report).why[0]?.code).toBe('no-counts')
    await run.release()
  })

  test('a member drained before is proved from its first reading on', async () => {
    const { clock, lb } = setUp()
    lb.setBehind(web1, 'drain')
    const member = only(await clock.runUntil(drain(lb, web1, { clock })))
    expect(member).toMatchObject({ outcome: 'idle', wasAdmin: 'drain', sealed: true })
  })

  test('a member found in maint stays there and needs no seal', async () => {
    const { clock, lb } = setUp()
    lb.setBehind(web1, 'maint')
    const member = only(await clock.runUntil(drain(lb, web1, { clock })))
    expect(member).toMatchObject({ outcome: 'idle', wasAdmin: 'maint', sealed: true })
    expect(lb.state(web1)).toBe('maint')
  })

  test('idle beside a draining member is lost with work, and proved anew', async () => {
    const { clock, lb } = setUp()
    const seen = recorder()
    const end = lb.occupy({ pool: 'web', member: 'web2' })
    const run = startDrain(lb, [web1, { pool: 'web', member: 'web2' }], {
      clock,
      timeout: '10m',
      seal: false,
      onEvent: seen.onEvent,
    })
    await clock.advance(5_000)
    expect(run.report().members.map((member) => member.phase)).toEqual(['idle', 'draining'])
    lb.arrive(web1)
    await clock.advance(1_000)
    expect(seen.of('idle-lost')).toHaveLength(1)
    end()
    const report = await clock.runUntil(run.done)
    expect(report.outcome).toBe('idle')
    expect(seen.of('idle')).toHaveLength(3)
    await run.release()
  })
})
