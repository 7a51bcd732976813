import { describe, expect, it } from 'vitest'
import type { DrainableError } from 'drainable'
import { bench, desired, memoryStore, web } from './set-up.js'

describe('a reconciler with failing parts', () => {
  it('reports an unreachable balancer for an hour and goes on', async () => {
    const at = bench('a', 'b')
    const faults: DrainableError[] = []
    at.lb.disconnect()
    await using loop = at.start()
    loop.on('fault', (error) => faults.push(error))
    loop.set(desired({ a: 'serve', b: 'drain' }))
    await at.clock.advance(3_600_000)
    expect(faults[0]?.code).toBe('UNREACHABLE')
    at.lb.connect()
    await at.clock.runUntil(loop.settled(), 60_000)
    expect(at.states('b')).toEqual(['maint'])
  })

  it('changes nothing while its store can not be read', async () => {
    const at = bench('a', 'b')
    let down = true
    const tickets = {
      ...memoryStore(),
      keys: () => {
        if (down) throw new Error('the store is down')
        return []
      },
    }
    await using loop = at.start({ tickets })
    loop.set(desired({ a: 'serve', b: 'drain' }))
    await at.clock.advance(60_000)
    expect(at.sent()).toEqual([])
    down = false
    await at.clock.runUntil(loop.settled(), 60_000)
    expect(at.states('b')).toEqual(['maint'])
  })

  it('retries a refused change with growing pauses, and says why', async () => {
    const at = bench('a', 'b')
    at.lb.failNext('reject', { verb: 'apply', times: 1_000 })
    await using loop = at.start()
    loop.set(desired({ a: 'serve', b: 'drain' }))
    await at.clock.advance(600_000)
    expect(at.sent().length).toBeLessThan(40)
    expect(loop.status()).toMatchObject([{ ref: web('b'), held: expect.any(String) as string }])
  })

  it('holds none below the floor, and the next once a replacement serves', async () => {
    const at = bench('a', 'b', 'c')
    await using loop = at.start({ keepReady: 2 })
    loop.set(desired({ a: 'drain', b: 'drain', c: 'serve' }))
    await at.clock.runUntil(loop.settled())
    expect(at.states('a', 'b', 'c').filter((state) => state === 'ready')).toHaveLength(2)
    const fresh = {
      pool: 'web',
      member: 'd',
      address: '10.0.0.9',
      port: 80,
      state: 'serve' as const,
    }
    loop.set([...desired({ a: 'drain', b: 'drain', c: 'serve' }), fresh])
    await at.clock.runUntil(loop.settled(), 120_000)
    expect(at.states('a', 'b', 'c', 'd')).toEqual(['maint', 'maint', 'ready', 'ready'])
  })
})
