import { describe, expect, it } from 'vitest'
import { bench, desired, memoryStore, web } from './set-up.js'

/** Two controllers that know nothing of each other, each with tickets of its own. */
function two(...members: string[]) {
  const at = bench(...members)
  const start = () => at.start({ tickets: memoryStore() })
  return { ...at, start }
}

describe('two reconcilers without a lease that disagree', () => {
  it('do not fight: what one drained the other leaves alone, and says so', async () => {
    const at = two('a', 'b')
    await using first = at.start()
    await using second = at.start()
    first.set(desired({ a: 'serve', b: 'drain' }))
    await at.clock.runUntil(first.settled())
    second.set(desired({ a: 'serve', b: 'serve' }))
    await at.clock.advance(600_000)
    expect(at.sent()).toEqual(['hold b drain', 'hold b maint'])
    expect(at.states('a', 'b')).toEqual(['ready', 'maint'])
    expect(second.status()).toMatchObject([
      {
        ref: web('b'),
        want: 'serve',
        held: expect.stringMatching(/in maint, but this reconciler did not drain it/) as unknown,
      },
    ])
    first.set(desired({ a: 'serve', b: 'serve' }))
    await at.clock.runUntil(first.settled())
    await at.clock.advance(120_000)
    expect(at.states('a', 'b')).toEqual(['ready', 'ready'])
    expect(second.status()).toEqual([])
  })

  it('end with a member gone that one removes and the other drains', async () => {
    const at = two('a', 'b')
    const end = at.lb.occupy(web('b'))
    await using first = at.start()
    await using second = at.start()
    first.set(desired({ a: 'serve', b: 'drain' }))
    second.set(desired({ a: 'serve', b: 'absent' }))
    await at.clock.advance(10_000)
    expect(at.states('b')).not.toEqual(['gone'])
    end()
    await at.clock.advance(120_000)
    expect(at.states('a', 'b')).toEqual(['ready', 'gone'])
    expect([first.status(), second.status()]).toEqual([[], []])
  })

  it('keep no pool below the floor: each drains another member', async () => {
    const at = two('a', 'b')
    await using first = at.start()
    await using second = at.start()
    first.set(desired({ a: 'drain', b: 'serve' }))
    second.set(desired({ a: 'serve', b: 'drain' }))
    await at.clock.advance(180_000)
    expect(at.states('a', 'b')).toContain('ready')
    const refused = [first, second].flatMap((loop) =>
      loop.status().filter(({ held }) => /keepReady|left serving/.test(held ?? '')),
    )
    expect(refused.length).toBeGreaterThan(0)
    const before = at.sent().length
    await at.clock.advance(600_000)
    expect(at.sent()).toHaveLength(before)
  })
})
