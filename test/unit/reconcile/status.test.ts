import { describe, expect, it } from 'vitest'
import { combineProviders, reconcile, type ReconcileOptions } from 'drainable'
import { fakeClock, fakeProvider } from 'drainable/testing'
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

  it('says what is asked of members of a pool that is not there, and tells that once', async () => {
    const at = bench('a', 'b')
    await using loop = at.start({ pools: ['wbe'] })
    const faults: string[] = []
    loop.on('fault', ({ code, message }) => faults.push(`${code} ${message}`))
    loop.set(desired({ a: 'serve', b: 'drain', c: 'absent' }, 'wbe'))
    await at.clock.runUntil(loop.settled())
    await at.clock.advance(60_000)
    const held = "there is no pool wbe, did you mean 'web'?"
    expect(loop.status()).toMatchObject([
      { ref: { member: 'a' }, want: 'serve', held },
      { ref: { member: 'b' }, want: 'drain', held },
      { ref: { member: 'c' }, want: 'absent', held },
    ])
    expect(faults).toEqual([`NOT_FOUND ${held}`])
  })

  it('is told of no pool that only another balancer has', async () => {
    const clock = fakeClock()
    const one = fakeProvider({ pools: { web: ['a'] }, clock, instance: 'one' })
    const two = fakeProvider({ pools: { api: ['b'] }, clock, instance: 'two' })
    await using loop = reconcile(combineProviders({ one, two }), { pools: ['web', 'api'], clock })
    const faults: string[] = []
    loop.on('fault', ({ message }) => faults.push(message))
    loop.set([])
    await clock.advance(5_000)
    expect(faults).toEqual([])
  })

  it("says what is asked of another client's member", async () => {
    const at = bench('ctl-a', 'ctl-b', 'vm')
    const owns: ReconcileOptions['owns'] = ({ ref }) => ref.member.startsWith('ctl-')
    await using loop = await at.settled(desired({ 'ctl-a': 'serve', vm: 'drain' }), { owns })
    const [row] = loop.status()
    expect(row).toMatchObject({
      ref: web('vm'),
      want: 'drain',
      held: expect.stringContaining('left alone in ready') as string,
    })
  })
})
