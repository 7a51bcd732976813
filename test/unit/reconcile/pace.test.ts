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

  it('leave a process most of its time where a look makes it work', async () => {
    const at = bench('a', 'b')
    let worked = 0
    const clock = { ...at.clock, now: () => at.clock.now() + worked }
    clock.setTimeout = (fn, ms) => at.clock.setTimeout(fn, ms)
    clock.wall = () => at.clock.wall() + worked
    const owns = (): boolean => {
      worked += 10
      return true
    }
    await using loop = at.start({ clock, owns })
    for (let i = 0; i < 100; i += 1) {
      loop.set(desired({ a: 'serve', b: 'serve' }))
      await at.clock.advance(6)
    }
    // 20 ms each: of 600 ms there is time for 5.
    expect(worked).toBeGreaterThan(0)
    expect(worked).toBeLessThanOrEqual(7 * 20)
  })
})

it('a set that comes alone is looked at without a wait', async () => {
  const at = slowBench(50, 'a', 'b')
  await using loop = await at.settled(desired({ a: 'serve', b: 'serve' }))
  await at.clock.advance(500)
  const before = at.lb.requests.length
  loop.set(desired({ a: 'serve', b: 'drain' }))
  await at.clock.advance(1)
  expect(at.lb.requests.length).toBe(before + 1)
})
