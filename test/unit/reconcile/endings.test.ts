/** How the drains of a set end: by options that a set may change, and by deadlines that are said. */
import { describe, expect, it } from 'vitest'
import { bench, desired, web } from './set-up.js'

/** `b` is to be taken out, and works on. */
async function busy(options: Parameters<ReturnType<typeof bench>['start']>[0] = {}) {
  const at = bench('a', 'b')
  const end = at.lb.occupy(web('b'))
  const loop = at.start({ timeout: '10m', ...options })
  const set = desired({ a: 'serve' })
  loop.set(set)
  await at.clock.advance(20_000)
  return { ...at, end, loop, desiredSet: set }
}

describe('the options of a set', () => {
  it('shorten a drain that is under way, counted from its beginning', async () => {
    const at = await busy()
    await using loop = at.loop
    const since = loop.status()[0]?.since ?? ''
    loop.set(at.desiredSet, { timeout: '30s' })
    await at.clock.advance(1_000)
    const [row] = loop.status()
    expect(Date.parse(row?.deadline ?? '') - Date.parse(since)).toBe(30_000)
    expect(await at.clock.runUntil(loop.settled())).toMatchObject([{ pastDeadline: true }])
    expect(at.states('b')).toEqual(['maint'])
  })

  it('lengthen a drain whose deadline has passed', async () => {
    const at = await busy({ timeout: '10s' })
    await using loop = at.loop
    expect(loop.status()).toMatchObject([{ ref: web('b'), pastDeadline: true }])
    loop.set(at.desiredSet, { timeout: '10m' })
    await at.clock.advance(1_000)
    expect(loop.status()).toMatchObject([{ ref: web('b'), pastDeadline: false, held: null }])
    at.end()
    await at.clock.advance(5_000)
    expect(at.states('b')).toEqual(['gone'])
  })

  it.each(['fail', 'terminate', 'remove'] as const)(
    'take the deadline away: it goes once it is idle (%s)',
    async (onTimeout) => {
      const at = await busy({ timeout: '30s', onTimeout })
      await using loop = at.loop
      loop.set(at.desiredSet, { timeout: Infinity })
      await at.clock.advance(20_000)
      expect(loop.status()).toMatchObject([
        { ref: web('b'), deadline: null, pastDeadline: false, held: null },
      ])
      expect(at.states('b')).toEqual(['maint'])
      at.end()
      await at.clock.advance(5_000)
      expect(at.states('b')).toEqual(['gone'])
    },
  )

  it('cut a member whose deadline has passed', async () => {
    const at = await busy({ timeout: '10s' })
    await using loop = at.loop
    expect(at.states('b')).toEqual(['maint'])
    loop.set(at.desiredSet, { onTimeout: 'terminate' })
    await at.clock.advance(10_000)
    expect(at.lb.load(web('b'))).toBe(0)
    expect(at.states('b')).toEqual(['gone'])
  })

  it('take a member out without a wait where they switch the drain off', async () => {
    const at = await busy()
    await using loop = at.loop
    expect(at.states('b')).toEqual(['maint'])
    loop.set(at.desiredSet, { drain: false })
    await at.clock.runUntil(loop.settled())
    expect(at.states('b')).toEqual(['gone'])
    expect(loop.status()).toEqual([])
  })

  it('wait again where they switch the drain on after a removal was refused', async () => {
    const at = bench('a', 'b')
    const end = at.lb.occupy(web('b'))
    await using loop = at.start()
    const set = desired({ a: 'serve', b: 'dead' })
    loop.set(set)
    await at.clock.advance(2_000)
    at.lb.failNext('reject', { verb: 'apply' })
    loop.set(desired({ a: 'serve' }), { drain: false })
    await at.clock.advance(300)
    loop.set(desired({ a: 'serve' }))
    await at.clock.advance(20_000)
    expect(at.states('b')).toEqual(['maint'])
    end()
    await at.clock.runUntil(loop.settled())
    expect(at.states('b')).toEqual(['gone'])
  })

  it('hold for their own set alone', async () => {
    const at = await busy()
    await using loop = at.loop
    loop.set(at.desiredSet, { timeout: '30s' })
    loop.set(at.desiredSet)
    await at.clock.advance(60_000)
    expect(loop.status()).toMatchObject([{ ref: web('b'), pastDeadline: false }])
  })

  it.each([
    [{ timeout: 30 }, /timeout/],
    [{ onTimeout: 'cut' }, /onTimeout/],
    [{ drain: 'no' }, /drain/],
    [{ keepReady: 2 }, /keepReady/],
  ])('refuse %j before the set is taken', async (options, words) => {
    const at = bench('a', 'b')
    await using loop = at.start()
    expect(() => loop.set(desired({ a: 'serve' }), options as never)).toThrow(
      expect.objectContaining({
        code: 'INVALID_OPTIONS',
        message: expect.stringMatching(words) as unknown,
      }),
    )
    await at.clock.advance(5_000)
    expect(at.sent()).toEqual([])
  })
})

describe('a deadline', () => {
  it('does not move while the drain is tried again', async () => {
    const at = await busy({ timeout: '30s' })
    await using loop = at.loop
    const [{ deadline } = {}] = loop.status()
    await at.clock.advance(300_000)
    expect(loop.status()).toMatchObject([{ ref: web('b'), deadline, pastDeadline: true }])
  })

  it('that passed is said by settled(), and not once the member is idle', async () => {
    const at = bench('a', 'b')
    const end = at.lb.occupy(web('b'))
    await using loop = at.start({ timeout: '10s' })
    loop.set(desired({ a: 'serve', b: 'drain' }))
    const rows = await at.clock.runUntil(loop.settled())
    expect(rows).toMatchObject([{ ref: web('b'), pastDeadline: true }])
    end()
    loop.set(desired({ a: 'serve', b: 'absent' }))
    expect(await at.clock.runUntil(loop.settled())).toEqual([])
  })

  it('that passed is said where the policy says to go on', async () => {
    const at = bench('a', 'b')
    at.lb.occupy(web('b'))
    await using loop = at.start({ timeout: '10s', onTimeout: 'proceed' })
    loop.set(desired({ a: 'serve', b: 'drain' }))
    const rows = await at.clock.runUntil(loop.settled())
    expect(rows).toMatchObject([{ pastDeadline: true, held: expect.any(String) as unknown }])
  })

  it('is kept by the next process, however often the last one died', async () => {
    const at = await busy({ timeout: '5m' })
    const [{ deadline } = {}] = at.loop.status()
    await at.clock.runUntil(at.loop.close())
    for (let died = 0; died < 4; died += 1) {
      const next = at.start({ timeout: '5m' })
      next.set(at.desiredSet)
      await at.clock.advance(20_000)
      expect(next.status()).toMatchObject([{ ref: web('b'), deadline }])
      await at.clock.runUntil(next.close())
    }
  })
})
