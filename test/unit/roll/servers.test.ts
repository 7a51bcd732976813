import { describe, expect, test } from 'vitest'
import { combineProviders, roll, select, startRoll } from 'drainable'
import type { DrainableProvider, MemberRef } from 'drainable'
import { fakeClock, fakeProvider, type FakeProvider } from 'drainable/testing'
import { setUp as setUpTwo } from '../combined/set-up.js'
import { actor, seenAs } from './set-up.js'

const onBoth = [
  { pool: 'web', balancer: 'a' },
  { pool: 'web', balancer: 'b' },
] as const

/** The same balancer with the addresses that a function says. */
function at(lb: FakeProvider, address: (ref: MemberRef) => string): DrainableProvider {
  return seenAs(lb, (one) => ({ ...one, address: address(one.ref) }))
}

describe('a roll counts servers', () => {
  test('with one address on two balancers as one', async () => {
    const { clock, a, b, all } = setUpTwo()
    const seen: string[][] = []
    const { act, calls } = actor(clock, async ({ refs, address }) => {
      seen.push(refs.map(({ balancer, member }) => `${balancer}/${member}`))
      expect(address).toMatch(/^\d/)
      const { member } = refs[0]!
      expect([a.state({ pool: 'web', member }), b.state({ pool: 'web', member })]).toEqual([
        'maint',
        'maint',
      ])
    })
    const report = await clock.runUntil(roll(all, onBoth, { act, clock }))
    expect(seen).toEqual([
      ['a/web1', 'b/web1'],
      ['a/web2', 'b/web2'],
      ['a/web3', 'b/web3'],
    ])
    expect(calls).toHaveLength(3)
    expect(report.servers).toHaveLength(3)
    expect(report.done).toHaveLength(6)
  })

  test('as each member if that is wished, or as a function says', async () => {
    const { clock, all } = setUpTwo()
    const { act, calls } = actor(clock)
    await clock.runUntil(roll(all, onBoth, { act, clock, group: 'ref' }))
    expect(calls).toHaveLength(6)
    const named = actor(clock)
    const group = ({ ref }: { ref: MemberRef }): string => ref.member
    await clock.runUntil(roll(all, onBoth, { act: named.act, clock, group }))
    expect(named.calls).toHaveLength(3)
  })

  test('a pool that two balancers have is refused without its balancer', async () => {
    const { clock, all } = setUpTwo()
    const { act, calls } = actor(clock)
    const run = startRoll(all, { pool: 'web' }, { act, clock })
    const { error } = await clock.runUntil(run.done)
    expect(error).toMatchObject({
      code: 'INVALID_OPTIONS',
      message: expect.stringMatching(/is on several balancers/) as unknown,
    })
    expect(calls).toEqual([])
  })

  test('each member once for targets of every kind in one list', async () => {
    const { clock, a, all } = setUpTwo()
    const [reading] = await clock.runUntil(select(a, { pool: 'web', member: 'web2' }, { clock }))
    const { address = '' } = reading as { address?: string }
    const { act, calls } = actor(clock)
    const target = [{ pool: 'web', member: 'web1', balancer: 'a' }, { address }, onBoth[0]]
    await clock.runUntil(roll(all, target, { act, clock }))
    expect(calls).toEqual(['web1 1', 'web2 1', 'web3 1'])
  })

  test('two ports of one server as one that the pool would lose', async () => {
    const clock = fakeClock(1_000)
    const names = ['a80', 'a81', 'b80', 'b81', 'c80', 'c81']
    const lb = at(fakeProvider({ pools: { web: names }, clock }), ({ member }) => {
      return `10.0.0.${member.charCodeAt(0)}`
    })
    // The floor of members would let two servers go: two members are left.
    const { act, most, calls } = actor(clock)
    const policy = { act, clock, maxUnavailable: 2, keepReady: 2 }
    const report = await clock.runUntil(startRoll(lb, { pool: 'web' }, policy).done)
    expect(report.outcome).toBe('done')
    expect(most()).toBe(1)
    expect(calls).toEqual(['a80 1', 'b80 1', 'c80 1'])
    const wait = { ...policy, keepReady: 3, onMinimum: 'wait', timeout: '1m' } as const
    const run = startRoll(lb, { pool: 'web' }, wait)
    await clock.advance(10_000)
    expect(run.why()).toMatchObject([
      { code: 'pool-at-minimum', text: expect.stringMatching(/group: 'ref'/) as unknown },
    ])
    const none = await clock.runUntil(run.done)
    expect(none.failed[0]?.error).toMatchObject({
      code: 'POOL_AT_MINIMUM',
      message: expect.stringMatching(
        /2 servers of web would be left serving, keepReady is 3/,
      ) as unknown,
    })
  })

  test('a name that another server has got since is not acted on', async () => {
    const clock = fakeClock(1_000)
    const inner = fakeProvider({ pools: { web: ['web1', 'web2', 'web3'] }, clock })
    let moved = '10.0.0.2'
    const lb = at(inner, ({ member }) => (member === 'web2' ? moved : `10.0.0.${member.charAt(3)}`))
    const { act, calls } = actor(clock, async () => void (moved = '10.9.9.9'))
    const report = await clock.runUntil(startRoll(lb, { pool: 'web' }, { act, clock }).done)
    expect(calls).toEqual(['web1 1'])
    expect(report.failed[0]?.error).toMatchObject({
      code: 'CONFLICT',
      message: expect.stringMatching(
        /web\/web2 has another address now: 10\.9\.9\.9, and not 10\.0\.0\.2/,
      ) as unknown,
    })
    expect(report.leftDrained).toEqual([])
    expect(inner.state({ pool: 'web', member: 'web2' })).toBe('ready')
  })

  test('a balancer that can not be read at the beginning stops it', async () => {
    const { clock, a, b, all } = setUpTwo()
    b.disconnect()
    const { act, calls } = actor(clock)
    const report = await clock.runUntil(startRoll(all, onBoth, { act, clock }).done)
    expect(report).toMatchObject({ outcome: 'stopped', error: { code: 'UNREACHABLE' } })
    expect(calls).toEqual([])
    expect(a.requests.filter(({ verb }) => verb === 'apply')).toEqual([])
  })

  test('a balancer that is gone for a while in between is waited for', async () => {
    const { clock, b } = setUpTwo()
    const a2 = fakeProvider({ pools: { web: ['web1', 'web2', 'web3'] }, clock, instance: 'a2' })
    const two = combineProviders({ a: a2, b })
    const wait = { onUnreachable: 'wait' } as const
    const { act, calls } = actor(clock, async ({ ref }) => {
      if (ref.member !== 'web1') return
      b.disconnect()
      clock.setTimeout(() => b.connect(), 20_000)
    })
    const report = await clock.runUntil(
      startRoll(two, onBoth, { act, clock, timeout: '2m', waitHealthy: '1m', ...wait }).done,
    )
    expect(report.outcome).toBe('done')
    expect(calls).toHaveLength(3)
  })
})
