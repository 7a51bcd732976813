import { describe, expect, it } from 'vitest'
import { bench, desired, web } from './set-up.js'

describe('a reconciler after a crash of an earlier one', () => {
  it('makes ready what the earlier one had drained, by its ticket', async () => {
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

  it('continues a drain, and keeps its deadline', async () => {
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

  it('drains at once a member that has the name of one that the earlier one drained', async () => {
    const at = bench('a', 'b')
    {
      await using first = at.start()
      first.set(desired({ a: 'serve', b: 'drain' }))
      await at.clock.runUntil(first.settled())
    }
    at.lb.setIdentity(web('b'), 'another')
    at.lb.setBehind(web('b'), 'ready')
    await using second = at.start()
    second.set(desired({ a: 'serve', b: 'drain' }))
    await at.clock.advance(100)
    expect(at.states('b')).toEqual(['drain'])
  })

  it('leaves alone what the earlier one holds while nothing is known', async () => {
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

  it.each([
    ['busy', false],
    ['busy, by a store that failed once', true],
    ['idle', false],
    ['idle, by a store that failed once', true],
  ])('leaves a drain set after the earlier one saw its own undone: %s', async (how, fails) => {
    const at = bench('a', 'b')
    const end = how.startsWith('busy') ? at.lb.occupy(web('b')) : () => undefined
    const set = at.tickets.set.bind(at.tickets)
    {
      await using first = at.start({ timeout: '10m' })
      first.set(desired({ a: 'serve', b: 'drain' }))
      await at.clock.advance(5_000)
      if (fails)
        at.tickets.set = async () => {
          at.tickets.set = set
          throw new Error('the store is down')
        }
      at.lb.setBehind(web('b'), 'ready')
      await at.clock.advance(10_000)
    }
    end()
    at.lb.reload()
    at.lb.setBehind(web('b'), how.startsWith('busy') ? 'drain' : 'maint')
    await using second = at.start()
    second.set(desired({ a: 'serve', b: 'serve' }))
    await at.clock.advance(60_000)
    expect(at.states('b')).not.toEqual(['ready'])
    const held = expect.stringContaining('but this reconciler did not drain it') as string
    expect(second.status()).toMatchObject([{ ref: web('b'), held }])
  })
})
