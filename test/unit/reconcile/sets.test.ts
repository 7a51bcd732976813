import { describe, expect, it } from 'vitest'
import { bench, desired, web } from './set-up.js'

describe('a reconciler', () => {
  it('drains endpoints side by side, and removes each once it is idle', async () => {
    const at = bench('a', 'b', 'c', 'd')
    const endB = at.lb.occupy(web('b'))
    await using loop = at.start()
    loop.set(desired({ a: 'serve', b: 'drain', c: 'absent' }))
    await at.clock.advance(5_000)
    // c and d have no endpoint any more; b works on
    expect(at.states('a', 'b', 'c', 'd')).toEqual(['ready', 'drain', 'gone', 'gone'])
    expect(loop.status()).toMatchObject([
      { ref: web('b'), phase: 'draining', want: 'drain', active: 1, held: null },
    ])
    endB()
    await at.clock.runUntil(loop.settled())
    expect(at.states('b')).toEqual(['maint'])
    expect(loop.status()).toMatchObject([{ ref: web('b'), phase: 'idle', active: 0 }])
  })

  it('makes a returning endpoint ready, and keeps nothing of its drain', async () => {
    const at = bench('a', 'b')
    await using loop = await at.settled(desired({ a: 'serve', b: 'drain' }))
    expect(at.states('a', 'b')).toEqual(['ready', 'maint'])
    loop.set(desired({ a: 'serve', b: 'serve' }))
    await at.clock.runUntil(loop.settled())
    expect(at.states('a', 'b')).toEqual(['ready', 'ready'])
    expect(loop.status()).toEqual([])
    expect([...at.tickets.kept.keys()].filter((key) => key.startsWith('reconcile:'))).toEqual([])
  })

  it('changes its mind halfway, each way, many times', async () => {
    const at = bench('a', 'b')
    const end = at.lb.occupy(web('b'))
    await using loop = at.start()
    for (let i = 0; i < 20; i += 1) {
      loop.set(desired({ a: 'serve', b: i % 2 === 0 ? 'drain' : 'serve' }))
      await at.clock.advance(i * 7)
    }
    await at.clock.runUntil(loop.settled())
    expect(at.states('a', 'b')).toEqual(['ready', 'ready'])
    end()
    loop.set(desired({ a: 'serve', b: 'absent' }))
    await at.clock.runUntil(loop.settled())
    expect(at.states('a', 'b')).toEqual(['ready', 'gone'])
  })

  it('adds what is missing, and removes what it added without owns', async () => {
    const at = bench('a')
    await using loop = at.start({ owns: () => false })
    const fresh = { pool: 'web', member: 'n', address: '10.0.0.9', port: 80 }
    loop.set([...desired({ a: 'serve' }), { ...fresh, state: 'serve' }])
    await at.clock.runUntil(loop.settled())
    expect(at.states('n')).toEqual(['ready'])
    loop.set(desired({ a: 'serve' }))
    await at.clock.runUntil(loop.settled())
    expect(at.states('a', 'n')).toEqual(['ready', 'gone'])
  })

  it('raises to maint what stops answering during its drain', async () => {
    const at = bench('a', 'b')
    at.lb.occupy(web('b'))
    await using loop = at.start({ timeout: '10m' })
    loop.set(desired({ a: 'serve', b: 'drain' }))
    await at.clock.advance(2_000)
    expect(at.states('b')).toEqual(['drain'])
    loop.set(desired({ a: 'serve', b: 'dead' }))
    await at.clock.advance(2_000)
    expect(at.states('b')).toEqual(['maint'])
    loop.set(desired({ a: 'serve', b: 'serve' }))
    await at.clock.runUntil(loop.settled())
    expect(at.states('b')).toEqual(['ready'])
  })

  it("changes no other client's members, in its pool or in other pools", async () => {
    const at = bench('ctl-a', 'ctl-b', 'vm')
    await using loop = await at.settled(desired({ 'ctl-a': 'serve' }), {
      owns: ({ ref }) => ref.member.startsWith('ctl-'),
    })
    expect(at.sent().filter((line) => !line.includes('ctl-b'))).toEqual([])
    expect(loop.status()).toMatchObject([
      { ref: web('vm'), held: expect.stringMatching(/foreign/) as unknown },
    ])
    expect(at.lb.state({ pool: 'other', member: 'x1' })).toBe('ready')
  })

  it('changes nothing by an empty list, unless that is allowed', async () => {
    const at = bench('a', 'b')
    {
      await using loop = await at.settled([])
      expect(at.sent()).toEqual([])
      expect(loop.status()).toMatchObject([
        { want: 'unknown', held: expect.stringContaining('empty') as string },
        { want: 'unknown' },
      ])
    }
    await using loop = at.start({ allowEmpty: true, keepReady: 0 })
    loop.set([])
    await at.clock.runUntil(loop.settled())
    expect(at.states('a', 'b')).toEqual(['gone', 'gone'])
  })

  it('waits for a first set, and then for nothing', async () => {
    const at = bench('a', 'b')
    await using loop = at.start()
    await at.clock.advance(60_000)
    expect(at.sent()).toEqual([])
    loop.set(desired({ a: 'serve', b: 'drain' }))
    await at.clock.advance(10)
    expect(at.states('b')).toEqual(['drain'])
  })

  it('says what it would do in a dry run, and does nothing', async () => {
    const at = bench('a', 'b')
    await using loop = await at.settled(desired({ a: 'serve', b: 'drain' }), { dryRun: true })
    expect(at.sent()).toEqual([])
    expect(loop.status()).toMatchObject([
      { ref: web('b'), held: expect.stringContaining('would hold in drain') as string },
    ])
  })

  it('removes at once what is not to be drained', async () => {
    const at = bench('a', 'b')
    at.lb.occupy(web('b'))
    await using loop = at.start({ drain: false })
    loop.set(desired({ a: 'serve', b: 'absent' }))
    await at.clock.runUntil(loop.settled())
    expect(at.states('a', 'b')).toEqual(['ready', 'gone'])
    expect(at.clock.now()).toBeLessThan(5_000)
  })

  it('ends when it is closed, with holds kept and no timer left', async () => {
    const at = bench('a', 'b')
    at.lb.occupy(web('b'))
    const loop = at.start()
    loop.set(desired({ a: 'serve', b: 'drain' }))
    await at.clock.advance(1_000)
    await at.clock.runUntil(loop.close())
    await loop.done
    await expect(loop.settled()).rejects.toMatchObject({ code: 'CONFLICT' })
    expect(at.states('b')).toEqual(['drain'])
    expect(at.clock.pending).toBe(0)
  })

  it('ends with the signal of its caller', async () => {
    const at = bench('a', 'b')
    const stop = new AbortController()
    const loop = at.start({ signal: stop.signal })
    loop.set(desired({ a: 'serve' }))
    await at.clock.advance(10)
    stop.abort(new Error('enough'))
    await at.clock.runUntil(loop.done)
  })

  it('ends with the error if its provider was closed', async () => {
    const at = bench('a', 'b')
    const loop = at.start()
    loop.set(desired({ a: 'serve', b: 'serve' }))
    await at.clock.advance(10)
    await at.lb.close()
    await expect(at.clock.runUntil(loop.done)).rejects.toMatchObject({ code: 'CONNECTION_LOST' })
    await expect(loop.settled()).rejects.toMatchObject({ code: 'CONNECTION_LOST' })
  })

  it('ends with the error if owns returns a promise', async () => {
    const at = bench('a', 'b')
    const loop = at.start({ owns: (async () => true) as never })
    loop.set(desired({ a: 'serve' }))
    await expect(at.clock.runUntil(loop.done)).rejects.toMatchObject({ code: 'INVALID_OPTIONS' })
    expect(at.sent()).toEqual([])
  })
})

describe('options of a reconciler', () => {
  it.each([
    ['no pools', { pools: [] }, /pools/],
    ['until', { until: 'idle' }, /until/],
    ['an unknown one', { drian: true }, /drian/],
    ['a lease that is none', { lease: {} }, /lease/],
    ['a short lease', { leaseTtl: '500ms' }, /leaseTtl/],
    ['the time of a lease without one', { leaseTtl: '3s' }, /leaseTtl.*there is no lease/],
    ['a wrong timeout', { timeout: 30 }, /timeout/],
  ])('are refused: %s', (_, options, words) => {
    const at = bench('a')
    expect(() => at.start(options as never)).toThrow(words)
  })

  it('a set that the caller changes afterwards stays as it was given', async () => {
    const at = bench('a', 'b')
    await using loop = at.start()
    const set = desired({ a: 'serve', b: 'serve' }) as { state?: string }[]
    loop.set(set as never)
    set[0]!.state = 'absent'
    delete set[1]!.state
    await at.clock.runUntil(loop.settled())
    expect(at.sent()).toEqual([])
    expect(loop.status()).toEqual([])
  })

  it('a set of another pool is refused, and the earlier one stays', async () => {
    const at = bench('a', 'b')
    await using loop = at.start()
    loop.set(desired({ a: 'serve', b: 'serve' }))
    expect(() => loop.set(desired({ x1: 'drain' }, 'other'))).toThrow(/desired\[0\]\.pool/)
    await at.clock.runUntil(loop.settled())
    expect(at.sent()).toEqual([])
  })
})
