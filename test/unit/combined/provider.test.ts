import { describe, expect, test } from 'vitest'
import { combineProviders, drain, isDrainableError, type Change, type DrainEvent } from 'drainable'
import { callContext, type ChangeResult } from 'drainable/provider'
import { fakeProvider } from 'drainable/testing'
import { thrown } from '../core/set-up.js'
import { a1, b1, bare, setUp } from './set-up.js'

/** For code that calls a combined provider as a plain one. */
describe('the contract of a combined provider', () => {
  test('has the capabilities of all parts, and the slowest timing', async () => {
    const { clock } = setUp()
    const pools = { web: ['web1', 'web2'] }
    const quick = { freshness: 0, blind: 1_100, terminate: true } as const
    const slow = { freshness: 4_000, blind: 0, terminate: false, maint: 'cuts' } as const
    const a = fakeProvider({ pools, clock, instance: 'a', capabilities: quick })
    const b = fakeProvider({ pools, clock, instance: 'b', capabilities: slow })
    const { capabilities, version } = await combineProviders({ a, b }).describe(callContext())
    expect(capabilities).toMatchObject({
      freshness: 4_000,
      blind: 1_100,
      terminate: false,
      maint: 'cuts',
    })
    expect(version).toMatch(/a=.*, b=/)
  })

  test('names the balancer in the sentence of each proof', async () => {
    const { clock, all } = setUp()
    const said: string[] = []
    const options = {
      clock,
      onEvent: (event: DrainEvent) => {
        if (event.type === 'idle') said.push(event.proof.text)
      },
    }
    const report = await clock.runUntil(drain(all, [a1, b1], options))
    const texts = report.members.map(({ proof }) => proof?.text)
    expect(texts).toEqual([expect.stringMatching(/^a: web/), expect.stringMatching(/^b: web/)])
    expect(said.toSorted()).toEqual(texts)
  })

  test('observes each part for its own members only', async () => {
    const { a, b, all } = setUp()
    const stranger = { ...bare, balancer: 'c' }
    const { readings, pools } = await all.observe([b1, stranger], callContext())
    expect(readings.map(({ ref, present }) => [ref, present])).toEqual([
      [b1, true],
      [stranger, false],
    ])
    expect(pools.map(({ balancer }) => balancer)).toEqual(['b'])
    expect(a.requests).toEqual([])
    expect(b.requests).toHaveLength(1)
    const everything = await all.observe('all', callContext())
    expect(everything.readings).toHaveLength(6)
  })

  test('applies in the order asked, and hands up each result once', async () => {
    const { a, b, all } = setUp()
    const hold = { kind: 'hold', to: 'drain' } as const
    const changes: Change[] = [b1, { ...bare, balancer: 'c' }, a1].map((ref) => ({ ...hold, ref }))
    const told: [number, ChangeResult['status']][] = []
    const result = (index: number, { status }: ChangeResult): void =>
      void told.push([index, status])
    const results = await all.apply(changes, { ...callContext(), result })
    expect(results.map(({ ref, status }) => [ref.balancer, status])).toEqual([
      ['b', 'applied'],
      ['c', 'rejected'],
      ['a', 'applied'],
    ])
    expect(told.sort(([x], [y]) => x - y)).toEqual([
      [0, 'applied'],
      [1, 'rejected'],
      [2, 'applied'],
    ])
    const [, refused] = results
    expect(refused && 'error' in refused && refused.error.message).toContain("'a', 'b'")
    expect([a.state(bare), b.state(bare)]).toEqual(['drain', 'drain'])
  })

  test('fails if one part fails, after all have ended', async () => {
    const { a, b, all } = setUp()
    a.failNext('throw', { verb: 'observe' })
    expect(isDrainableError(await thrown(all.observe('all', callContext())))).toBe(true)
    expect(b.requests).toHaveLength(1)
  })

  test('stops listening to its parts with its last listener, even a once one', async () => {
    const { clock, a, all } = setUp()
    const events = all as ReturnType<typeof combineProviders>
    const heard: DrainEvent['type'][] = []
    events.once('phase', ({ type }) => heard.push(type))
    await clock.runUntil(drain(all, [a1, b1], { clock, seal: false }))
    expect(heard).toEqual(['phase'])
    // Without a listener there are no looks for changes by other clients.
    const before = a.requests.length
    await clock.advance(60_000)
    expect(a.requests).toHaveLength(before)
  })
})
