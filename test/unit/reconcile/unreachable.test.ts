import { describe, expect, it } from 'vitest'
import { bench, desired } from './set-up.js'

describe('a reconciler with an unreachable balancer', () => {
  it('sends no hold of an earlier set once it is back', async () => {
    const at = bench('a', 'b')
    await using loop = await at.settled(desired({ a: 'serve', b: 'serve' }))
    at.lb.failNext('throw', { verb: 'apply' })
    loop.set(desired({ a: 'serve', b: 'drain' }))
    while (at.sent().length === 0) await at.clock.advance(1)
    at.lb.disconnect()
    await at.clock.advance(2_000)
    loop.set(desired({ a: 'serve', b: 'serve' }))
    await at.clock.advance(500)
    const before = at.sent().length
    at.lb.connect()
    await at.clock.advance(60_000)
    expect(at.sent().slice(before)).toEqual([])
    expect(at.states('a', 'b')).toEqual(['ready', 'ready'])
    expect(loop.status()).toEqual([])
  })

  it('drains what the newest set wants once it is back', async () => {
    const at = bench('a', 'b', 'c')
    await using loop = await at.settled(desired({ a: 'serve', b: 'drain', c: 'serve' }))
    at.lb.disconnect()
    await at.clock.advance(5_000)
    loop.set(desired({ a: 'serve', b: 'serve', c: 'drain' }))
    await at.clock.advance(500)
    loop.set(desired({ a: 'serve', b: 'drain', c: 'drain' }))
    await at.clock.advance(5_000)
    at.lb.connect()
    await at.clock.advance(60_000)
    expect(at.states('a', 'b', 'c')).toEqual(['ready', 'maint', 'maint'])
    expect(loop.status().map(({ held }) => held)).toEqual([null, null])
  })
})
