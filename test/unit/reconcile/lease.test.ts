import { describe, expect, it } from 'vitest'
import { fakeLease } from 'drainable/testing'
import { bench, desired, memoryStore, slowBench, slowStore } from './set-up.js'

describe('reconcilers that share a lease', () => {
  it('take turns, and the second continues where the first ends', async () => {
    const at = bench('a', 'b')
    const lease = fakeLease({ clock: at.clock })
    const first = at.start({ lease })
    await using second = at.start({ lease })
    first.set(desired({ a: 'serve', b: 'drain' }))
    second.set(desired({ a: 'serve', b: 'serve' }))
    await at.clock.runUntil(first.settled())
    expect([first.leading, second.leading]).toEqual([true, false])
    expect(at.states('b')).toEqual(['maint'])
    await at.clock.runUntil(first.close())
    await at.clock.runUntil(second.settled())
    expect(second.leading).toBe(true)
    expect(at.states('b')).toEqual(['ready'])
  })

  it('stop changes when the lease is lost, and resume when it is back', async () => {
    const at = bench('a', 'b', 'c')
    const lease = fakeLease({ clock: at.clock })
    const faults: string[] = []
    await using loop = at.start({ lease })
    loop.on('fault', (error) => faults.push(error.code))
    loop.set(desired({ a: 'serve', b: 'drain', c: 'serve' }))
    await at.clock.runUntil(loop.settled())
    const before = at.sent()
    lease.failNext('throw', Infinity)
    await at.clock.advance(10_000)
    expect(loop.leading).toBe(false)
    loop.set(desired({ a: 'serve', b: 'serve', c: 'drain' }))
    at.lb.reload()
    await at.clock.advance(60_000)
    expect(at.sent()).toEqual(before)
    expect(faults).toContain('NOT_LEADER')
    lease.failNext('throw', 0)
    await at.clock.runUntil(loop.settled())
    expect(at.states('a', 'b', 'c')).toEqual(['ready', 'ready', 'maint'])
  })

  // The lease is told to be another's at the next renewal; each call takes its time, so that many are under way.
  it.each(Array.from({ length: 24 }, (_, i) => 150 * i))(
    'send nothing from the moment when it is lost: %d ms',
    async (after) => {
      const at = slowBench(120, 'a', 'b', 'c', 'd')
      const lease = fakeLease({ clock: at.clock })
      const tickets = slowStore(at.clock, 40)
      const loop = at.start({ lease, leaseTtl: '3s', tickets })
      let atLoss: number | undefined
      loop.on('leading', (leading) => (atLoss = leading ? undefined : at.sent().length))
      loop.set(desired({ a: 'serve', b: 'drain', c: 'absent', d: 'serve' }))
      await at.clock.advance(after)
      lease.failNext('throw', Infinity)
      loop.set(desired({ a: 'serve', b: 'serve', c: 'drain', d: 'drain' }))
      await at.clock.advance(20_000)
      expect(loop.leading).toBe(false)
      expect(at.sent()).toHaveLength(atLoss ?? -1)
      lease.failNext('throw', 0)
      await at.clock.runUntil(loop.settled(), 120_000)
      const [a, b, , d] = at.states('a', 'b', 'c', 'd')
      expect([a, b, d]).toEqual(['ready', 'ready', 'maint'])
      await at.clock.runUntil(loop.close())
      expect(at.clock.pending).toBe(0)
    },
  )

  it('agree without one if both want the same', async () => {
    const at = bench('a', 'b')
    await using first = at.start({ tickets: memoryStore() })
    await using second = at.start({ tickets: memoryStore() })
    for (const loop of [first, second]) loop.set(desired({ a: 'serve', b: 'drain' }))
    await at.clock.runUntil(Promise.all([first.settled(), second.settled()]))
    expect(at.states('a', 'b')).toEqual(['ready', 'maint'])
  })
})

describe('a reconciler without a lease', () => {
  it('tells a listener that it leads', async () => {
    const at = bench('a')
    await using loop = at.start()
    const told: boolean[] = []
    loop.on('leading', (leading) => told.push(leading))
    await at.clock.advance(10)
    expect(told).toEqual([true])
    await at.clock.runUntil(loop.close())
    expect(told).toEqual([true, false])
  })
})
