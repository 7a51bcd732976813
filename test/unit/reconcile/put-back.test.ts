import { describe, expect, it } from 'vitest'
import { DrainableError } from 'drainable'
import { bench, desired, web } from './set-up.js'

describe('a reconciler with a refused put-back after a reload', () => {
  it('calls the member active, says why, and tries again', async () => {
    const at = bench('a', 'b')
    await using loop = await at.settled(desired({ a: 'serve', b: 'drain' }))
    at.lb.failNext('reject', { verb: 'apply' })
    at.lb.reload()
    await at.clock.advance(500)
    const held = expect.stringContaining('told to refuse') as string
    expect(loop.status()).toMatchObject([{ ref: web('b'), phase: 'active', held }])
    await at.clock.advance(30_000)
    expect(at.states('a', 'b')).toEqual(['ready', 'maint'])
    expect(loop.status()).toMatchObject([{ ref: web('b'), phase: 'idle', held: null }])
  })

  it('leaves what another client sets meanwhile', async () => {
    const at = bench('a', 'b')
    await using loop = await at.settled(desired({ a: 'serve', b: 'drain' }))
    const error = new DrainableError('CONFLICT', 'it is busy', { retryable: true })
    at.lb.failNext('reject', { verb: 'apply', times: 2, error })
    at.lb.reload()
    const sent = at.sent().length
    while (at.sent().length < sent + 2) await at.clock.advance(10)
    const looks = at.lb.requests.length
    while (at.lb.requests.length === looks) await at.clock.advance(10) // it sees that the member is open still
    at.lb.setBehind(web('b'), 'maint')
    await at.clock.advance(1_000)
    loop.set(desired({ a: 'serve', b: 'serve' }))
    await at.clock.advance(30_000)
    expect(at.states('b')).toEqual(['maint'])
    const held = expect.stringContaining('but this reconciler did not drain it') as string
    expect(loop.status()).toMatchObject([{ ref: web('b'), held }])
  })
})
