import type { PresentReading, Snapshot } from 'drainable/provider'
import { describe, expect, test } from 'vitest'
import { a, b, plan, reading, short, snapshotOf, wish } from '../plan-support.js'

describe('matching', () => {
  test('IPv6 matches in any spelling', () => {
    const six = reading('six', '2001:DB8:0::0001')
    expect(short([wish('[2001:db8::1]', 'serve')], snapshotOf(six))).toEqual([])
  })

  test('a mapped IPv4 address is the IPv4 address', () => {
    expect(short([wish('10.0.0.1', 'serve')], snapshotOf(reading('m', '::ffff:10.0.0.1')))).toEqual(
      [],
    )
  })

  test('route domains are apart', () => {
    const other = reading('other', '10.0.0.1%1')
    expect(short([wish('10.0.0.1', 'serve')], snapshotOf(a, other))).toEqual(['other drain'])
    expect(short([wish('10.0.0.1%1', 'serve')], snapshotOf(a, other))).toEqual(['a drain'])
  })

  test('ports are apart, unless one side has none', () => {
    const { ref, present, identity, address, own, serves, health, scopes } = a
    const portless = { ref, present, identity, own, serves, health, scopes, address: address ?? '' }
    expect(short([wish('10.0.0.1', 'serve', { port: 81 })], snapshotOf(a))).toEqual([
      '10.0.0.1:81 add',
      'a held',
    ])
    expect(short([wish('10.0.0.1', 'serve', { port: 81 })], snapshotOf(portless))).toEqual([])
    const anyPort = { pool: 'web', address: '10.0.0.1', state: 'drain' } as const
    const second = reading('a2', '10.0.0.1', { port: 81 })
    expect(short([anyPort, wish('10.0.0.2', 'serve')], snapshotOf(a, second, b))).toEqual([
      'a drain',
      'a2 drain',
    ])
  })

  test('of two port names on one number the one that wants more counts', () => {
    const both = [wish('10.0.0.1', 'drain'), wish('10.0.0.1', 'serve')]
    expect(short(both, snapshotOf(a))).toEqual([])
    expect(short(both.toReversed(), snapshotOf())).toEqual(['10.0.0.1:80 add'])
  })

  test('is by name if no address is given', () => {
    const desired = [
      { pool: 'web', member: 'a', state: 'drain' } as const,
      wish('10.0.0.2', 'serve'),
    ]
    expect(short(desired, snapshotOf(a, b))).toEqual(['a drain'])
  })

  test('a member without an address is reported and never changed', () => {
    const dns = reading('dns', undefined)
    const { changes, held } = plan([wish('10.0.0.1', 'serve')], snapshotOf(a, dns), {
      idle: () => true,
    })
    expect(changes).toEqual([])
    expect(held).toEqual([
      { ref: dns.ref, reason: expect.stringContaining('no address') as string },
    ])
  })

  test('a slot taken over by another address is drained, its own one added', () => {
    const reused = reading('web1', '10.0.0.9')
    const desired = [wish('10.0.0.5', 'serve', { member: 'web1' }), wish('10.0.0.2', 'serve')]
    expect(short(desired, snapshotOf(reused, b))).toEqual([
      'web1 drain',
      expect.stringMatching(/^web1-\w+ add$/),
    ])
  })

  test('covers every balancer of a combined provider that has the pool', () => {
    const at = (balancer: string, one: PresentReading): PresentReading => ({
      ...one,
      ref: { ...one.ref, balancer },
    })
    const snapshot: Snapshot = {
      readings: [at('x', a), at('x', b), at('y', b)],
      pools: ['x', 'y'].map((balancer) => ({
        pool: 'web',
        balancer,
        serving: 1,
        total: 1,
        whenNone: 'refuse',
      })),
    }
    const { changes } = plan([wish('10.0.0.1', 'serve'), wish('10.0.0.2', 'drain')], snapshot)
    expect(changes.map(({ kind, ref }) => [kind, ref])).toEqual([
      ['hold', { pool: 'web', member: 'b', balancer: 'x' }],
      ['add', { pool: 'web', member: '10.0.0.1:80', balancer: 'y' }],
    ])
  })

  test('a member on port 0 takes the port of the client', () => {
    const any = reading('any', '10.0.0.1', { port: 0 })
    expect(short([wish('10.0.0.1', 'serve')], snapshotOf(any))).toEqual([])
  })

  test('many ports of one address are told apart, as few are', () => {
    const ports = Array.from({ length: 12 }, (_, i) => 8_000 + i)
    const nodes = ports.map((port) => reading(`p${port}`, '10.0.0.1', { port }))
    const anyPort = reading('any', '10.0.0.1', { port: 0 })
    const wanted = ports.map((port) =>
      wish('10.0.0.1', port === 8_003 ? 'drain' : 'serve', { port }),
    )
    expect(short(wanted, snapshotOf(...nodes, anyPort))).toEqual(['p8003 drain'])
    const all = { pool: 'web', address: '10.0.0.1', state: 'drain' } as const
    const { changes } = plan([all], snapshotOf(...nodes, anyPort), { keepReady: 0 })
    expect(changes).toHaveLength(13)
  })
})
