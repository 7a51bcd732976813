/** What a plan is about: the pools it is given, and of their members those that are ours. */
import fc from 'fast-check'
import type { DesiredMember } from 'drainable/endpoints'
import type { PresentReading, Snapshot } from 'drainable/provider'
import { describe, expect, test } from 'vitest'
import { a, b, plan, reading, short, snapshotOf, wish } from './plan-support.js'

function inPool(pool: string, one: PresentReading): PresentReading {
  return { ...one, ref: { ...one.ref, pool } }
}

describe('pools', () => {
  const stranger = inPool('api', reading('z', '10.0.0.7'))

  test('a Service scaled to zero takes out no unrelated member', () => {
    const options = { pools: ['web'], allowEmpty: true }
    expect(short([], snapshotOf(a, stranger), options)).toEqual(['a drain'])
  })

  test('of two Services in one list, only the emptied one is emptied', () => {
    const options = { pools: ['web', 'api'], allowEmpty: true }
    expect(short([wish('10.0.0.1', 'serve')], snapshotOf(a, stranger), options)).toEqual([
      'z drain',
    ])
  })

  test('without allowEmpty it is held, with the reason', () => {
    const { changes, held } = plan([wish('10.0.0.1', 'serve')], snapshotOf(a, stranger), {
      pools: ['web', 'api'],
    })
    expect(changes).toEqual([])
    expect(held).toMatchObject([{ ref: stranger.ref }])
    expect(held[0]?.reason).toContain('allowEmpty')
  })

  test('without any pool nothing is touched, whatever is allowed', () => {
    expect(short([], snapshotOf(a, stranger), { pools: [], allowEmpty: true })).toEqual([])
  })

  test('a pool named twice is planned once', () => {
    const options = { pools: ['web', 'web'], allowEmpty: true }
    expect(short([], snapshotOf(a), options)).toEqual(['a drain'])
  })

  test('changes are of named pools and owned members only', () => {
    const names = ['p', 'q', 'r', 's'] as const
    const member = fc.record({
      pool: fc.constantFrom(...names),
      own: fc.constantFrom('ready', 'drain', 'maint', 'unknown'),
      ours: fc.boolean(),
      wanted: fc.constantFrom('serve', 'drain', 'absent', 'vanished'),
    })
    const state = fc.record({
      members: fc.array(member, { maxLength: 8 }),
      pools: fc.subarray([...names]),
      allowEmpty: fc.boolean(),
      keepReady: fc.nat({ max: 2 }),
    })
    fc.assert(
      fc.property(state, ({ members, pools, ...options }) => {
        const readings = members.map(({ pool, own, ours }, i) =>
          inPool(pool, reading(`${ours ? 'ctl-' : ''}m${i}`, `10.0.0.${i}`, { own })),
        )
        const desired = members.flatMap(({ pool, wanted }, i): DesiredMember[] =>
          wanted === 'vanished' || !pools.includes(pool)
            ? []
            : [{ ...wish(`10.0.0.${i}`, wanted), pool }],
        )
        const snapshot: Snapshot = {
          readings,
          pools: names.map((pool) => ({ pool, serving: 0, total: 0, whenNone: 'refuse' })),
        }
        const owns = (one: { ref: { member: string } }) => one.ref.member.startsWith('ctl-')
        const { changes, held } = plan(desired, snapshot, {
          pools,
          owns,
          idle: () => true,
          ...options,
        })
        for (const { ref, kind } of changes) {
          expect(pools).toContain(ref.pool)
          if (kind !== 'add') expect(ref.member).toMatch(/^ctl-/)
        }
        for (const { ref } of held) expect(pools).toContain(ref.pool)
      }),
      { numRuns: 1_000 },
    )
  })
})

describe('owns', () => {
  test('leaves a machine or backup beside the endpoints where it is', () => {
    const backup = reading('backup', '192.0.2.9')
    const owns = (one: { ref: { member: string } }) => one.ref.member !== 'backup'
    const { changes, held } = plan([], snapshotOf(a, backup), { owns, allowEmpty: true })
    expect(changes.map(({ ref }) => ref.member)).toEqual(['a'])
    expect(held[0]?.reason).toMatch(/^foreign: left alone in ready/)
  })

  test('counts a foreign member that keeps work', () => {
    const owns = (one: { ref: { member: string } }) => one.ref.member === 'a'
    expect(short([wish('10.0.0.1', 'drain')], snapshotOf(a, b), { owns })).toEqual([
      'a drain',
      'b held',
    ])
  })
})

describe('names of members to be added', () => {
  /** The additions of a plan by address. */
  function names(...[desired, snapshot, options]: Parameters<typeof plan>): Map<string, string> {
    const { changes } = plan(desired, snapshot, options)
    return new Map(
      changes.flatMap((one) => (one.kind === 'add' ? [[one.address, one.ref.member]] : [])),
    )
  }
  const nameOf = (address: string, member: string, ...there: PresentReading[]): string =>
    names([wish(address, 'serve', { member })], snapshotOf(...there)).get(address) ?? 'none'

  test('are two where two addresses have one', () => {
    const desired = ['10.0.0.8', '10.0.0.9'].map((at) => wish(at, 'serve', { member: 'web' }))
    const given = names(desired, snapshotOf(a))
    expect([...given.keys()]).toEqual(['10.0.0.8', '10.0.0.9'])
    expect(new Set(given.values()).size).toBe(2)
    expect(given.get('10.0.0.8')).toBe('web')
  })

  test.each(['web-0', 'ctl-web-0', '10.0.0.1:80', 'ctl-web-0:80', '/Common/web-0:80'])(
    'keep what %s begins with, and a port at the end',
    (member) => {
      const name = nameOf('10.0.0.9', member, reading(member, '10.0.0.1'))
      const [, begin = '', port = ''] = /^(.+?)(:80)?$/.exec(member) ?? []
      expect(name).toMatch(new RegExp(`^${begin}-[a-z0-9]+${port}$`))
    },
  )

  test('are others where the product lists the name with partition or port', () => {
    const there = reading('/Common/web-0:80', '10.0.0.1')
    expect(nameOf('10.0.0.9', 'web-0:80', there)).toMatch(/^web-0-[a-z0-9]+:80$/)
    expect(nameOf('10.0.0.9', 'web-0', there)).toMatch(/^web-0-[a-z0-9]+$/)
    expect(nameOf('10.0.0.9', 'b-0:80', there)).toBe('b-0:80')
  })

  test('are no longer than a product takes', () => {
    const long = `ctl-${'x'.repeat(200)}`
    const name = nameOf('10.0.0.9', long, reading(long, '10.0.0.1'))
    expect(name).toMatch(/^ctl-x+-[a-z0-9]+$/)
    expect(name.length).toBeLessThanOrEqual(127)
  })

  test('are the same in each plan for one address, however it is written', () => {
    const there = reading('web-0', '10.0.0.1')
    const first = nameOf('2001:db8::1', 'web-0', there)
    expect(first).not.toBe('web-0')
    expect(nameOf('2001:DB8:0::1', 'web-0', there, reading('b', '10.0.0.2'))).toBe(first)
    expect(nameOf('2001:db8::2', 'web-0', there)).not.toBe(first)
  })

  test('say why they are others', () => {
    const { steps } = plan(
      [wish('10.0.0.9', 'serve', { member: 'a' }), wish('10.0.0.1', 'serve')],
      snapshotOf(a),
    )
    expect(steps[0]?.reason).toMatch(
      /^wants serve; as a-\w+, because its name a is taken by a member at 10\.0\.0\.1:80$/,
    )
  })

  test('wait for a member of which no address is known', () => {
    const dns = reading('web-0', undefined)
    const { changes, held } = plan(
      [wish('10.0.0.9', 'serve', { member: 'web-0' })],
      snapshotOf(dns),
    )
    expect(changes).toEqual([])
    expect(held.map(({ reason }) => reason)).toContainEqual(
      'wants serve, but its name web-0 is taken by a member at an unknown address: it is added once that one is out',
    )
  })

  test('wait where the other name is taken too', () => {
    const first = reading('web-0', '10.0.0.1')
    const other = nameOf('10.0.0.9', 'web-0', first)
    expect(nameOf('10.0.0.9', 'web-0', first, reading(other, '10.0.0.2'))).toBe('none')
  })

  test('block no address where one of one comes back elsewhere', () => {
    const desired = [wish('10.0.0.9', 'serve', { member: 'web-0' })]
    const dead = reading('web-0', '10.0.0.1')
    const before = plan(desired, snapshotOf(dead))
    expect(before.changes).toMatchObject([{ kind: 'add', address: '10.0.0.9' }])
    const added = reading(nameOf('10.0.0.9', 'web-0', dead), '10.0.0.9')
    const after = plan(desired, snapshotOf(dead, added), { idle: () => true })
    expect(after.changes).toMatchObject([{ kind: 'hold', ref: dead.ref }])
    const held = reading('web-0', '10.0.0.1', { own: 'maint' })
    const last = plan(desired, snapshotOf(held, added), { idle: () => true })
    expect(last.changes).toMatchObject([{ kind: 'remove', ref: dead.ref }])
    expect(plan(desired, snapshotOf(added)).changes).toEqual([])
  })
})
