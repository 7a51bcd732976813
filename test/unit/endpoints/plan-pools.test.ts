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
  test('with one name for two: the second waits, with the reason', () => {
    const desired = ['10.0.0.8', '10.0.0.9'].map((at) => wish(at, 'serve', { member: 'web' }))
    const { changes, held } = plan(desired, snapshotOf(a), { owns: () => false })
    expect(changes).toMatchObject([{ kind: 'add', address: '10.0.0.8' }])
    expect(held.map(({ reason }) => reason)).toContainEqual(
      'wants serve, but its name web is given to another one that is added',
    )
  })
})
