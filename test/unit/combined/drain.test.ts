import { describe, expect, test } from 'vitest'
import { drain, isDrainableError, startDrain, type DrainEvent } from 'drainable'
import { thrown } from '../core/set-up.js'
import { a1, b1, bare, setUp } from './set-up.js'

const both = [a1, b1]

describe('a drain over two balancers', () => {
  test('is idle once it is idle on both', async () => {
    const { clock, a, b, all } = setUp()
    const report = await clock.runUntil(drain(all, both, { clock }))
    expect(report.outcome).toBe('idle')
    expect(report.members.map(({ ref, outcome }) => [ref.balancer, outcome])).toEqual([
      ['a', 'idle'],
      ['b', 'idle'],
    ])
    expect([a.state(bare), b.state(bare)]).toEqual(['maint', 'maint'])
  })

  test('waits for the slower one, and why() names it', async () => {
    const { clock, b, all } = setUp()
    const end = b.occupy(bare, 2)
    await using run = startDrain(all, both, { clock, timeout: '60s' })
    await clock.advance(10_000)
    expect(run.why()[0]).toMatchObject({ code: 'in-flight', ref: b1 })
    expect(run.why()[0]!.text).toMatch(/^b: /)
    expect(run.report().members.map(({ phase }) => phase)).toEqual(['idle', 'draining'])
    end()
    expect((await clock.runUntil(run.done)).outcome).toBe('idle')
  })

  test('takes back the idle of the first, and proves it anew', async () => {
    const { clock, a, b, all } = setUp()
    const endB = b.occupy(bare)
    const lost: DrainEvent[] = []
    await using run = startDrain(all, both, { clock, timeout: '60s', seal: false })
    run.on('idle-lost', (event) => lost.push(event))
    await clock.advance(5_000)
    expect(run.report().members[0]).toMatchObject({ phase: 'idle' })
    const endA = a.occupy(bare)
    await clock.advance(5_000)
    endB()
    await clock.advance(5_000)
    expect(lost).toHaveLength(1)
    expect(run.report().members.map(({ phase }) => phase)).toEqual(['draining', 'idle'])
    endA()
    const report = await clock.runUntil(run.done)
    expect(report.outcome).toBe('idle')
    expect(report.members.every(({ verifiedIdle }) => verifiedIdle)).toBe(true)
  })

  test('does not end on an idle lost while the tickets are written', async () => {
    const { clock, a, all } = setUp()
    let release: (() => void) | undefined
    let end: (() => void) | undefined
    await using run = startDrain(all, both, {
      clock,
      timeout: '60s',
      seal: false,
      onTicket: async (ticket) => {
        if (end !== undefined || !ticket.members.every(({ outcome }) => outcome === 'idle')) return
        end = a.occupy(bare)
        await new Promise<void>((resolve) => (release = resolve))
      },
    })
    await clock.advance(10_000)
    release?.()
    await clock.advance(5_000)
    expect(run.report().members[0]).toMatchObject({ phase: 'draining' })
    end?.()
    expect((await clock.runUntil(run.done)).outcome).toBe('idle')
  })

  test('ends as its worst part at the deadline', async () => {
    const { clock, b, all } = setUp()
    b.occupy(bare)
    const error = await thrown(clock.runUntil(drain(all, both, { clock, timeout: '10s' })))
    expect(isDrainableError(error, 'DRAIN_TIMEOUT')).toBe(true)
    if (!isDrainableError(error, 'DRAIN_TIMEOUT')) return
    expect(error.message).toContain('b:web/web1')
    expect(error.report.members.map(({ outcome }) => outcome)).toEqual(['idle', 'timeout'])
  })

  test('is not begun on either when one refuses', async () => {
    const { clock, a, b, all } = setUp()
    b.setBehind({ pool: 'web', member: 'web2' }, 'maint')
    b.setBehind({ pool: 'web', member: 'web3' }, 'maint')
    const error = await thrown(clock.runUntil(drain(all, both, { clock })))
    expect(isDrainableError(error, 'POOL_AT_MINIMUM') && error.message).toMatch(/^b: /)
    expect([a.state(bare), b.state(bare)]).toEqual(['ready', 'ready'])
    expect(a.requests.filter(({ verb }) => verb === 'apply')).toEqual([])
    // The place that was asked for is free again.
    const others = [
      { ...a1, member: 'web2' },
      { ...a1, member: 'web3' },
    ]
    expect((await clock.runUntil(drain(all, others, { clock }))).outcome).toBe('idle')
  })

  test('of an address takes it out wherever it is', async () => {
    const { clock, a, b, all } = setUp()
    const { address } = (await a.observe([bare], { clock, signal: new AbortController().signal }))
      .readings[0] as { address: string }
    const report = await clock.runUntil(drain(all, { address }, { clock, keepReady: 0 }))
    expect(report.members.length).toBeGreaterThanOrEqual(2)
    expect([a.state(bare), b.state(bare)]).toEqual(['maint', 'maint'])
  })

  test('runs the action while both are held, and tells it when one is lost', async () => {
    const { clock, b, all } = setUp()
    const seen: unknown[] = []
    const run = drain(all, both, { clock, seal: false }, async (report, { signal }) => {
      seen.push(report.outcome)
      b.setBehind(bare, 'ready')
      await new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason as Error))
      })
    })
    const error = await thrown(clock.runUntil(run))
    expect(seen).toEqual(['idle'])
    expect(isDrainableError(error, 'DRAIN_OVERRULED') && error.message).toMatch(/^b: /)
  })

  test('rejects with the reason of the signal if the action has wrapped it', async () => {
    const { clock, b, all } = setUp()
    const run = drain(all, both, { clock, seal: false }, async (_, { signal }) => {
      b.setBehind(bare, 'ready')
      await new Promise((_, reject) => {
        const wrapped = (): Error => new Error('gave up', { cause: signal.reason })
        signal.addEventListener('abort', () => reject(wrapped()))
      })
    })
    const error = await thrown(clock.runUntil(run))
    expect(isDrainableError(error, 'DRAIN_OVERRULED') && error.ref).toEqual(b1)
  })

  test('emits one end, as the last event', async () => {
    const { clock, all } = setUp()
    const types: string[] = []
    const run = startDrain(all, both, { clock })
    const reading = (async () => {
      for await (const event of run) types.push(event.type)
    })()
    await clock.runUntil(run.done)
    await clock.runUntil(reading)
    await run.release()
    expect(types.filter((type) => type === 'end')).toHaveLength(1)
    expect(types.at(-1)).toBe('end')
  })

  test('opens both again on restore', async () => {
    const { clock, a, b, all } = setUp()
    const run = startDrain(all, both, { clock })
    await clock.runUntil(run.done)
    const report = await clock.runUntil(run.restore())
    expect(report.members.map(({ ref, outcome }) => [ref.balancer, outcome])).toEqual([
      ['a', 'restored'],
      ['b', 'restored'],
    ])
    expect([a.state(bare), b.state(bare)]).toEqual(['ready', 'ready'])
  })

  test('ends both on an abort, and opens both if that is wished', async () => {
    const { clock, a, b, all } = setUp()
    b.occupy(bare)
    const stop = new AbortController()
    const run = startDrain(all, both, {
      clock,
      signal: stop.signal,
      onAbort: 'restore',
      timeout: '60s',
    })
    await clock.advance(3_000)
    stop.abort(new Error('enough'))
    expect((await clock.runUntil(run.done)).outcome).toBe('aborted')
    expect([a.state(bare), b.state(bare)]).toEqual(['ready', 'ready'])
  })

  test('ends on an abort while a refused part waits for one that lost idle', async () => {
    const { clock, a, b, all } = setUp()
    a.failNext('reject', { verb: 'apply' })
    let hasLost = false
    const stop = new AbortController()
    const run = startDrain(all, both, {
      clock,
      timeout: '60s',
      seal: false,
      signal: stop.signal,
      onTicket: async ({ members }) => {
        if (hasLost || !members.some(({ outcome }) => outcome === 'idle')) return
        hasLost = true
        b.occupy(bare)
        await new Promise<void>((resolve) => void clock.setTimeout(resolve, 1_500))
      },
    })
    await clock.advance(10_000)
    expect(run.report().members.map(({ phase }) => phase)).toEqual(['active', 'draining'])
    stop.abort(new Error('enough'))
    expect((await clock.runUntil(run.done, 30_000)).outcome).toBe('aborted')
  })

  test('is aborted when it is released before its end', async () => {
    const { clock, b, all } = setUp()
    b.occupy(bare)
    const run = startDrain(all, both, { clock, timeout: '60s' })
    await clock.advance(3_000)
    await clock.runUntil(run.release())
    const report = await clock.runUntil(run.done)
    expect(report.outcome).toBe('aborted')
    expect(report.members).toHaveLength(2)
  })

  test('keeps the pace of a fast part beside a slow one', async () => {
    const { clock, a, all } = setUp({}, { b: { latency: 2_000 } })
    await using run = startDrain(all, both, { clock, timeout: '60s' })
    await clock.runUntil(run.done)
    const looks = a.requests.filter(({ verb }) => verb === 'observe').length
    expect(looks).toBeGreaterThan(20)
  })
})
