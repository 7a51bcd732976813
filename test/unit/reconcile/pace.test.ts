import { describe, expect, it } from 'vitest'
import { bench, desired, slowBench } from './set-up.js'

describe('ten thousand sets a minute', () => {
  it('lead to one look after another, and the last one counts', async () => {
    const at = bench('a', 'b', 'c')
    await using loop = at.start()
    for (let i = 0; i < 10_000; i += 1) {
      loop.set(desired({ a: 'serve', b: i % 3 === 0 ? 'drain' : 'serve', c: 'serve' }))
      if (i % 100 === 0) await at.clock.advance(600)
    }
    loop.set(desired({ a: 'serve', b: 'serve', c: 'drain' }))
    await at.clock.runUntil(loop.settled())
    expect(at.states('a', 'b', 'c')).toEqual(['ready', 'ready', 'maint'])
  })

  it('do not delay a look: the balancer follows while they come', async () => {
    const at = slowBench(50, 'a', 'b', 'c')
    await using loop = at.start()
    const give = async (b: 'serve' | 'drain'): Promise<void> => {
      loop.set(desired({ a: 'serve', b, c: 'serve' }))
      await at.clock.advance(6)
    }
    for (let i = 0; i < 300; i += 1) await give('serve')
    for (let i = 0; i < 300; i += 1) await give('drain')
    expect(at.states('b')).not.toEqual(['ready'])
  })

  it('do not hurry an unreadable balancer', async () => {
    const at = slowBench(50, 'a', 'b')
    await using loop = await at.settled(desired({ a: 'serve', b: 'serve' }))
    at.lb.disconnect()
    const before = at.lb.requests.length
    for (let i = 0; i < 1_000; i += 1) {
      loop.set(desired({ a: 'serve', b: i % 2 === 0 ? 'serve' : 'drain' }))
      await at.clock.advance(60)
    }
    expect(at.lb.requests.length - before).toBeLessThan(20)
  })
})
