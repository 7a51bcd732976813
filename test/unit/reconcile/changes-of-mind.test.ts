/** A member whose wish changes while something is under way for it. */
import { describe, expect, it } from 'vitest'
import { reconcile, type DrainableProvider } from 'drainable'
import { fakeClock, fakeProvider, type FakeClock, type FakeProvider } from 'drainable/testing'
import { bench, desired, slowBench, web } from './set-up.js'

/** Its changes take so many milliseconds, and its looks do not. */
function slowToChange(lb: FakeProvider, clock: FakeClock, ms: number): DrainableProvider {
  return {
    specVersion: 1,
    name: lb.name,
    instance: lb.instance,
    describe: (ctx) => lb.describe(ctx),
    observe: (refs, ctx) => lb.observe(refs, ctx),
    apply: async (changes, ctx) => {
      await new Promise<void>((resolve) => void clock.setTimeout(resolve, ms))
      return lb.apply(changes, ctx)
    },
    close: () => lb.close(),
    [Symbol.asyncDispose]: () => lb.close(),
  }
}

describe('a wish that changes', () => {
  it('back to serve during a hanging call releases the member', async () => {
    const at = bench('a', 'b')
    await using loop = at.start()
    loop.set(desired({ a: 'serve', b: 'drain' }))
    await at.clock.advance(100)
    at.lb.failNext('hang', { verb: 'apply' }) // the seal
    while (!at.sent().includes('hold b maint')) await at.clock.advance(10)
    const sent = at.sent().length
    loop.set(desired({ a: 'serve', b: 'absent' }))
    await at.clock.advance(50)
    loop.set(desired({ a: 'serve', b: 'serve' }))
    await at.clock.advance(120_000)
    expect(at.states('b')).toEqual(['ready'])
    expect(at.sent().slice(sent)).toEqual(['restore b ready'])
    expect(loop.status()).toEqual([])
  })

  // Before the loop knows that the balancer is away, and after.
  it.each([10, 2_000])(
    'back to serve %d ms after the balancer went away holds nothing',
    async (after) => {
      const at = slowBench(5, 'a', 'b')
      await using loop = at.start()
      loop.set(desired({ a: 'serve', b: 'drain' }))
      while (loop.status().length === 0) await at.clock.advance(1) // planned, and not sent yet
      at.lb.disconnect()
      await at.clock.advance(after)
      loop.set(desired({ a: 'serve', b: 'serve' }))
      await at.clock.advance(2_000)
      at.lb.connect()
      await at.clock.advance(60_000)
      expect(at.sent()).toEqual([])
      expect(loop.status()).toEqual([])
    },
  )

  // While its next call begins, and before that has seen the member.
  it.each([6, 9, 12])(
    'to another deadline, %d ms before the balancer goes away, opens nothing',
    async (before) => {
      const at = slowBench(5, 'a', 'b')
      at.lb.occupy(web('b'))
      await using loop = at.start({ timeout: '10m' })
      const set = desired({ a: 'serve', b: 'drain' })
      loop.set(set)
      await at.clock.advance(3_000)
      loop.set(set, { timeout: '5m' })
      await at.clock.advance(before)
      at.lb.disconnect()
      await at.clock.advance(300)
      loop.set(set, { timeout: '5m' })
      await at.clock.advance(2_000)
      at.lb.connect()
      await at.clock.advance(20_000)
      expect(at.sent()).not.toContain('restore b ready')
      expect(at.states('b')).toEqual(['drain'])
    },
  )

  it('for others keeps no place at the floor while the balancer is away', async () => {
    const at = slowBench(5, 'a', 'b', 'c', 'd')
    await using loop = at.start({ keepReady: 2 })
    loop.set(desired({ a: 'serve', b: 'drain', c: 'serve', d: 'serve' }))
    while (loop.status().length === 0) await at.clock.advance(1)
    at.lb.disconnect()
    await at.clock.advance(500)
    loop.set(desired({ a: 'serve', b: 'drain', c: 'dead', d: 'dead' }))
    await at.clock.advance(2_000)
    at.lb.connect()
    await at.clock.runUntil(loop.settled(), 120_000)
    expect(at.states('a', 'b', 'c', 'd')).toEqual(['ready', 'ready', 'maint', 'maint'])
    expect(at.sent()).not.toContain('hold b drain')
  })

  it('for others keeps no place at the floor while a hold hangs', async () => {
    const at = bench('a', 'b', 'c', 'd')
    await using loop = at.start({ keepReady: 2 })
    at.lb.failNext('hang', { verb: 'apply' })
    loop.set(desired({ a: 'serve', b: 'absent', c: 'serve', d: 'serve' }))
    while (at.sent().length === 0) await at.clock.advance(1)
    loop.set(desired({ a: 'serve', b: 'drain', c: 'dead', d: 'dead' }))
    await at.clock.runUntil(loop.settled(), 120_000)
    expect(at.states('a', 'b', 'c', 'd')).toEqual(['ready', 'ready', 'maint', 'maint'])
    expect(loop.status().find(({ ref }) => ref.member === 'b')?.held).toContain('keepReady is 2')
  })

  it('back to serve opens it after a next call that could not begin', async () => {
    const at = bench('a', 'b')
    at.lb.occupy(web('b'))
    await using loop = at.start({ timeout: '10m' })
    loop.set(desired({ a: 'serve', b: 'drain' }))
    await at.clock.advance(2_000)
    loop.set(desired({ a: 'serve', b: 'drain' }), { timeout: '10ms' }) // no proof is that fast
    await at.clock.advance(2_000)
    loop.set(desired({ a: 'serve', b: 'serve' }))
    await at.clock.advance(60_000)
    expect(at.states('b')).toEqual(['ready'])
    expect(loop.status()).toEqual([])
  })

  /** `b` is held in drain, and is to be in maint: that was refused. */
  async function unraised(times: number) {
    const at = bench('a', 'b')
    const loop = at.start({ timeout: '10m' })
    at.lb.failNext('hang-after', { verb: 'apply', late: 1_000 })
    at.lb.failNext('reject', { verb: 'apply', times })
    loop.set(desired({ a: 'serve', b: 'drain' }))
    await at.clock.advance(500)
    loop.set(desired({ a: 'serve', b: 'absent' }))
    const rows = await at.clock.runUntil(loop.settled(), 120_000)
    return { ...at, loop, rows }
  }

  it('to absent raises again after a raise that was refused', async () => {
    const at = await unraised(1)
    await using loop = at.loop
    const held = expect.stringContaining('told to refuse') as string
    expect(at.rows).toMatchObject([{ ref: web('b'), phase: 'idle', held }])
    await at.clock.advance(10_000)
    expect(at.states('b')).toEqual(['gone'])
    expect(loop.status()).toEqual([])
  })

  it('back to drain after a refused raise is as wanted', async () => {
    const at = await unraised(100)
    await using loop = at.loop
    loop.set(desired({ a: 'serve', b: 'drain' }))
    await at.clock.runUntil(loop.settled())
    expect(loop.status()).toMatchObject([{ ref: web('b'), phase: 'idle', held: null }])
  })

  // What the next call found under way was counted as lost, also once its answer had come.
  it('back to serve after a hold under way was taken over ends with the undo', async () => {
    const clock = fakeClock()
    const capabilities = { lateBound: 30_000 }
    const lb = fakeProvider({ pools: { web: ['a', 'b'] }, clock, latency: 5, capabilities })
    const provider = slowToChange(lb, clock, 300)
    await using loop = reconcile(provider, { pools: ['web'], owns: () => true, clock })
    loop.set(desired({ a: 'serve', b: 'drain' }), { timeout: '10m' })
    while (!lb.requests.some(({ verb }) => verb === 'apply')) await clock.advance(5)
    await clock.advance(1_050) // it is in drain, and the seal is under way
    loop.set(desired({ a: 'serve', b: 'drain' }), { timeout: '5m' })
    await clock.advance(60)
    loop.set(desired({ a: 'serve', b: 'serve' }))
    const startedAt = clock.now()
    await clock.runUntil(loop.settled())
    expect(lb.state(web('b'))).toBe('ready')
    expect(clock.now() - startedAt).toBeLessThan(5_000)
  })

  it('from absent to drain before idle keeps the member', async () => {
    const at = bench('a', 'b')
    const end = at.lb.occupy(web('b'))
    await using loop = at.start({ timeout: '10m' })
    loop.set(desired({ a: 'serve', b: 'absent' }))
    await at.clock.advance(2_000)
    loop.set(desired({ a: 'serve', b: 'drain' }))
    await at.clock.advance(2_000)
    end()
    await at.clock.advance(120_000)
    expect(at.states('b')).toEqual(['maint'])
    expect(loop.status()).toMatchObject([{ ref: web('b'), want: 'drain', held: null }])
  })
})
