import { describe, expect, it } from 'vitest'
import { bench, desired, web, type Bench } from './set-up.js'

describe('a reconciler beside an operator', () => {
  it('leaves in maint what another client put there, even if it owns it', async () => {
    const at = bench('a', 'b')
    at.lb.setBehind(web('b'), 'maint')
    await using loop = await at.settled(desired({ a: 'serve', b: 'serve' }))
    expect(at.sent()).toEqual([])
    expect(loop.status()).toMatchObject([
      {
        ref: web('b'),
        want: 'serve',
        held: expect.stringContaining('but this reconciler did not drain it') as string,
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
      { ref: web('b'), held: expect.stringContaining('another client made it ready') as string },
    ])
    end()
    loop.set(desired({ a: 'serve', b: 'absent' }))
    await at.clock.runUntil(loop.settled())
    expect(at.states('b')).toEqual(['gone'])
  })

  it('opens a member to what another client made of it', async () => {
    const at = bench('a', 'b')
    at.lb.setBehind(web('b'), 'drain')
    await using loop = await at.settled(desired({ a: 'serve', b: 'dead' }))
    expect(at.states('b')).toEqual(['maint'])
    at.lb.setBehind(web('b'), 'ready')
    await at.clock.advance(10_000)
    loop.set(desired({ a: 'serve', b: 'dead' }).map((one) => ({ ...one, reason: 'anew' })))
    await at.clock.runUntil(loop.settled())
    expect(at.states('b')).toEqual(['maint'])
    loop.set(desired({ a: 'serve', b: 'serve' }))
    await at.clock.runUntil(loop.settled())
    expect(at.states('b')).toEqual(['ready'])
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

  it('leaves a drain set after its own look saw the member open', async () => {
    const at = bench('a', 'b')
    await using loop = await at.settled(desired({ a: 'serve', b: 'drain' }))
    loop.set(desired({ a: 'serve', b: 'serve' }))
    await until(at, () => at.states('b')[0] === 'drain') // half of the undo: from maint by way of drain
    at.lb.disconnect()
    at.lb.reload()
    await seesAll(at) // it fails, and the next one comes before that of the undo
    at.lb.connect()
    await seesAll(at)
    at.lb.setBehind(web('b'), 'drain')
    await at.clock.advance(60_000)
    expect(at.states('b')).toEqual(['drain'])
    expect(loop.status()).toMatchObject([
      {
        ref: web('b'),
        held: expect.stringContaining('but this reconciler did not drain it') as string,
      },
    ])
  })

  it('leaves a maint set after its own look saw the member open', async () => {
    const at = bench('a', 'b')
    await using loop = await at.settled(desired({ a: 'serve', b: 'drain' }))
    at.lb.failNext('reject', { verb: 'apply' })
    loop.set(desired({ a: 'serve', b: 'serve' }))
    await until(at, () => loop.status()[0]?.held?.includes('told to refuse') === true)
    at.lb.reload()
    loop.set(desired({ a: 'serve', b: 'serve' }))
    await seesAll(at) // nothing but the loop looks before the undo is tried again
    at.lb.setBehind(web('b'), 'maint')
    await at.clock.advance(60_000)
    expect(at.states('b')).toEqual(['maint'])
    expect(loop.status()).toMatchObject([
      {
        ref: web('b'),
        held: expect.stringContaining('but this reconciler did not drain it') as string,
      },
    ])
  })

  it('leaves a later maint alone while a seal has no answer', async () => {
    const at = bench('a', 'b')
    await using loop = at.start()
    loop.set(desired({ a: 'serve', b: 'drain' }))
    await at.clock.advance(100)
    at.lb.failNext('hang-after', { verb: 'apply', late: 20 })
    await until(at, () => at.states('b')[0] === 'maint')
    await at.clock.advance(200) // its effect is seen; its call is still under way
    at.lb.reload()
    await at.clock.advance(500)
    loop.set(desired({ a: 'serve', b: 'serve' }))
    await at.clock.advance(2_000)
    at.lb.setBehind(web('b'), 'maint')
    await at.clock.advance(180_000)
    expect(at.states('b')).toEqual(['maint'])
    expect(loop.status()).toMatchObject([{ ref: web('b'), held: expect.any(String) as string }])
  })
})

/** Lets the clock go on until a condition holds; the test's own time limit ends it. */
async function until(at: Bench, holds: () => boolean): Promise<void> {
  while (!holds()) await at.clock.advance(10)
}

/** Lets the clock go on until the loop looks at everything. */
async function seesAll(at: Bench): Promise<void> {
  const before = at.lb.requests.length
  await until(at, () => at.lb.requests.slice(before).some(({ refs }) => refs === 'all'))
}
