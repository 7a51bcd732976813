import { describe, expect, it } from 'vitest'
import { fakeLease } from 'drainable/testing'
import { bench, desired, memoryStore } from './set-up.js'

describe('reconcilers that share a lease', () => {
  it('take turns: the second goes on where the first ends', async () => {
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

  it('stop changing once the lease is lost, and go on when it is back', async () => {
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

  it('agree without one: two that want the same do no harm', async () => {
    const at = bench('a', 'b')
    await using first = at.start({ tickets: memoryStore() })
    await using second = at.start({ tickets: memoryStore() })
    for (const loop of [first, second]) loop.set(desired({ a: 'serve', b: 'drain' }))
    await at.clock.runUntil(Promise.all([first.settled(), second.settled()]))
    expect(at.states('a', 'b')).toEqual(['ready', 'maint'])
  })
})
