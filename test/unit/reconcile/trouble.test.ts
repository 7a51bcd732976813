import { describe, expect, it } from 'vitest'
import type { DrainableError } from 'drainable'
import { fakeLease } from 'drainable/testing'
import { bench, desired, memoryStore, slowBench, web } from './set-up.js'

describe('a reconciler beside an operator', () => {
  it('leaves in maint what somebody else put there, although it owns it', async () => {
    const at = bench('a', 'b')
    at.lb.setBehind(web('b'), 'maint')
    await using loop = at.start()
    loop.set(desired({ a: 'serve', b: 'serve' }))
    await at.clock.runUntil(loop.settled())
    expect(at.sent()).toEqual([])
    expect(loop.status()).toMatchObject([
      {
        ref: web('b'),
        want: 'serve',
        held: expect.stringContaining('not by a drain of ours') as string,
      },
    ])
    at.lb.setBehind(web('b'), 'ready')
    await at.clock.advance(10_000)
    expect(loop.status()).toEqual([])
  })

  it('does not fight for a member made ready until its endpoint changes', async () => {
    const at = bench('a', 'b')
    const end = at.lb.occupy(web('b'))
    await using loop = at.start({ timeout: '10m' })
    loop.set(desired({ a: 'serve', b: 'drain' }))
    await at.clock.advance(2_000)
    at.lb.setBehind(web('b'), 'ready')
    await at.clock.advance(120_000)
    expect(at.sent()).toEqual(['hold b drain'])
    expect(loop.status()).toMatchObject([
      { ref: web('b'), held: expect.stringContaining('somebody else made it ready') as string },
    ])
    end()
    loop.set(desired({ a: 'serve', b: 'absent' }))
    await at.clock.runUntil(loop.settled())
    expect(at.states('b')).toEqual(['gone'])
  })

  it('puts back what a reload forgot', async () => {
    const at = bench('a', 'b')
    await using loop = at.start()
    loop.set(desired({ a: 'serve', b: 'drain' }))
    await at.clock.runUntil(loop.settled())
    at.lb.reload()
    expect(at.states('b')).toEqual(['ready'])
    await at.clock.advance(10_000)
    expect(at.states('a', 'b')).toEqual(['ready', 'maint'])
  })
})

describe('a reconciler after a crash of the one before', () => {
  it('makes ready what that one had drained, by its ticket', async () => {
    const at = bench('a', 'b')
    {
      await using first = at.start()
      first.set(desired({ a: 'serve', b: 'drain' }))
      await at.clock.runUntil(first.settled())
    }
    expect(at.states('b')).toEqual(['maint'])
    await using second = at.start()
    second.set(desired({ a: 'serve', b: 'serve' }))
    await at.clock.runUntil(second.settled())
    expect(at.states('b')).toEqual(['ready'])
  })

  it('goes on with a drain, and keeps its deadline', async () => {
    const at = bench('a', 'b')
    at.lb.occupy(web('b'))
    const deadlines: unknown[] = []
    for (let life = 0; life < 3; life += 1) {
      await using loop = at.start({ timeout: '60s' })
      loop.set(desired({ a: 'serve', b: 'drain' }))
      await at.clock.advance(5_000)
      deadlines.push(
        Date.parse(loop.status()[0]?.deadline ?? '') - at.clock.wall() + at.clock.now(),
      )
    }
    expect(new Set(at.sent())).toEqual(new Set(['hold b drain']))
    for (const one of deadlines) expect(one).toBeCloseTo(60_000, -2)
  })

  it('leaves alone what it holds while nothing is known yet', async () => {
    const at = bench('a', 'b')
    {
      await using first = at.start()
      first.set(desired({ a: 'serve', b: 'drain' }))
      await at.clock.runUntil(first.settled())
    }
    const before = at.sent()
    await using second = at.start()
    await at.clock.advance(30_000)
    second.set([])
    await at.clock.advance(30_000)
    expect(at.sent()).toEqual(before)
    expect(at.states('b')).toEqual(['maint'])
  })
})

describe('the status of a reconciler', () => {
  it('is told as a drain goes on, not only when the balancer is looked at', async () => {
    const at = bench('a', 'b')
    const end = at.lb.occupy(web('b'), 3)
    await using loop = at.start()
    const told: unknown[] = []
    loop.on('status', (members) => told.push(members.map(({ phase, active }) => [phase, active])))
    loop.set(desired({ a: 'serve', b: 'drain' }))
    await at.clock.advance(500)
    expect(told.at(-1)).toEqual([['draining', 3]])
    end()
    await at.clock.runUntil(loop.settled())
    await at.clock.advance(200)
    expect(told.at(-1)).toEqual([['idle', 0]])
    expect(told.length).toBeLessThan(30)
  })
})

describe('a reconciler whose parts fail', () => {
  it('says so and goes on where the balancer can not be reached for an hour', async () => {
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

  it('tries a refused change again with growing waits, and says why', async () => {
    const at = bench('a', 'b')
    at.lb.failNext('reject', { verb: 'apply', times: 1_000 })
    await using loop = at.start()
    loop.set(desired({ a: 'serve', b: 'drain' }))
    await at.clock.advance(600_000)
    expect(at.sent().length).toBeLessThan(40)
    expect(loop.status()).toMatchObject([{ ref: web('b'), held: expect.any(String) as string }])
  })

  it('holds nobody below the floor, and takes the next once a replacement serves', async () => {
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

  it('stop changing at once where the lease is lost, and go on when they have it again', async () => {
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

describe('ten thousand sets a minute', () => {
  it('make one look after another, and the last one counts', async () => {
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

  it('put no look off: the balancer follows while they come', async () => {
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

  it('do not hurry a balancer that can not be read', async () => {
    const at = slowBench(50, 'a', 'b')
    await using loop = at.start()
    loop.set(desired({ a: 'serve', b: 'serve' }))
    await at.clock.runUntil(loop.settled())
    at.lb.disconnect()
    const before = at.lb.requests.length
    for (let i = 0; i < 1_000; i += 1) {
      loop.set(desired({ a: 'serve', b: i % 2 === 0 ? 'serve' : 'drain' }))
      await at.clock.advance(60)
    }
    expect(at.lb.requests.length - before).toBeLessThan(20)
  })
})
