import { describe, expect, it } from 'vitest'
import { bench, desired, web } from './set-up.js'

describe('the status of a reconciler', () => {
  it('is updated as a drain goes on, not only at looks', async () => {
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
