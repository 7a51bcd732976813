import { describe, expect, it } from 'vitest'
import { bench, desired, slowBench, slowStore, web } from './set-up.js'

/** What is sent after `close()`, so many turns after the look that has a drain undone which was left and is not claimed yet. */
async function sentAfterClose(turns: number): Promise<readonly string[]> {
  const at = slowBench(5, 'a', 'b')
  const tickets = slowStore(at.clock, 100)
  const first = at.start({ tickets })
  first.set(desired({ a: 'serve', b: 'drain' }))
  await at.clock.runUntil(first.settled())
  await at.clock.runUntil(first.close())
  const second = at.start({ tickets })
  second.set(desired({ a: 'serve', b: 'drain' }))
  while (second.status().length === 0) await at.clock.advance(1)
  const looked = Promise.withResolvers<unknown>()
  const observe = at.lb.observe.bind(at.lb)
  at.lb.observe = async (...asked) => {
    const snapshot = await observe(...asked)
    looked.resolve(snapshot)
    return snapshot
  }
  second.set(desired({ a: 'serve', b: 'serve' }))
  const closed = looked.promise.then(async () => {
    for (let turn = 0; turn < turns; turn += 1) await Promise.resolve()
    await second.close()
  })
  await at.clock.runUntil(closed)
  const sent = at.sent().length
  await at.clock.advance(10_000)
  return at.sent().slice(sent)
}

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

  it('drains at once a member with the name of one drained before', async () => {
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

  it('sends nothing after it was closed in the moment of an undo', async () => {
    const sent: string[] = []
    for (let turns = 0; turns < 50; turns += 1) sent.push(...(await sentAfterClose(turns)))
    expect(sent).toEqual([])
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
