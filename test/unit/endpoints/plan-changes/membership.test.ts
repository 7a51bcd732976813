import { type DesiredMember, type PlanOptions } from 'drainable/endpoints'
import type { AdminState, LoadScope, Snapshot } from 'drainable/provider'
import { describe, expect, test } from 'vitest'
import {
  a,
  b,
  capabilities,
  gentle,
  idleScope,
  plan,
  reading,
  short,
  snapshotOf,
  wish,
} from '../plan-support.js'

describe('removing', () => {
  const desired = [wish('10.0.0.2', 'serve')]
  const inState = (own: AdminState, scope: Partial<LoadScope> = {}): Snapshot =>
    snapshotOf(
      reading('a', '10.0.0.1', { own, ...gentle, scopes: [{ ...idleScope, ...scope }] }),
      b,
    )

  test('takes more than one step: a vanished member is held first', () => {
    expect(short(desired, inState('ready', { released: true }), { idle: () => true })).toEqual([
      'a maint',
    ])
  })

  test('does not follow zeros of one snapshot', () => {
    const { changes, held } = plan(desired, inState('maint'))
    expect(changes).toEqual([])
    expect(held[0]?.reason).toContain('in maint and not proved idle (0 in flight, 0 queued)')
  })

  test('follows the word of a caller who has a report', () => {
    const { changes } = plan(desired, inState('maint'), { idle: () => true })
    expect(changes).toEqual([{ kind: 'remove', ref: a.ref, identity: a.identity }])
  })

  test('follows the word of every process while no work can arrive', () => {
    expect(short(desired, inState('maint', { released: true }))).toEqual(['a remove'])
    expect(short(desired, inState('drain', { released: true }), { gone: 'drain' })).toEqual([
      'a held',
    ])
    expect(short(desired, inState('maint', { released: true, active: 1 }))).toEqual(['a held'])
    expect(short(desired, inState('maint', { released: true, inForce: false }))).toEqual(['a held'])
    expect(short(desired, inState('maint', { released: true, state: 'unread' }))).toEqual([
      'a held',
    ])
    const noScopes = snapshotOf(
      reading('a', '10.0.0.1', { own: 'maint', ...gentle, scopes: [] }),
      b,
    )
    expect(short(desired, noScopes)).toEqual(['a held'])
  })

  test('covers only gone endpoints: an unready one keeps its place', () => {
    const unready = [...desired, wish('10.0.0.1', 'drain', { serving: false })]
    expect(short(unready, inState('maint'), { idle: () => true })).toEqual([])
  })

  test('is reported if the product can not remove', () => {
    const fixed = { ...capabilities, remove: false }
    const options = { idle: () => true, capabilities: fixed }
    expect(short(desired, inState('maint'), options)).toEqual(['a held'])
  })
})

describe('adding', () => {
  test('covers serving endpoints that are missing, named by address', () => {
    const desired = [
      wish('2001:db8::1', 'serve', { weight: 5 }),
      wish('10.0.0.9', 'serve', { member: 'nine' }),
    ]
    expect(plan(desired, snapshotOf()).changes).toEqual([
      {
        kind: 'add',
        ref: { pool: 'web', member: '[2001:db8::1]:80' },
        address: '2001:db8::1',
        port: 80,
        weight: 5,
      },
      { kind: 'add', ref: { pool: 'web', member: 'nine' }, address: '10.0.0.9', port: 80 },
    ])
  })

  test('never covers what drains or is left out', () => {
    expect(short([wish('10.0.0.1', 'drain'), wish('10.0.0.3', 'absent')], snapshotOf())).toEqual([])
  })

  test.each<[string, DesiredMember, Partial<PlanOptions>]>([
    ['ifAbsent skip', wish('10.0.0.9', 'serve', { ifAbsent: 'skip' }), {}],
    ['no port', { pool: 'web', address: '10.0.0.9', state: 'serve' }, {}],
    ['no address', { pool: 'web', member: 'nine', state: 'serve' }, {}],
    [
      'a product that can not',
      wish('10.0.0.9', 'serve'),
      {
        capabilities: {
          ladder: ['ready', 'drain', 'maint'],
          maint: 'gentle',
          add: false,
          remove: false,
        },
      },
    ],
  ])('is not done but reported: %s', (_name, one, options) => {
    const { changes, held } = plan([one, wish('10.0.0.1', 'serve')], snapshotOf(a), options)
    expect(changes).toEqual([])
    expect(held).toHaveLength(1)
  })

  test('is reported for a missing pool', () => {
    const wanted = [{ ...wish('10.0.0.1', 'serve'), pool: 'wep' }]
    const { changes, held } = plan(wanted, snapshotOf(a), { pools: ['wep'] })
    expect(changes).toEqual([])
    expect(held).toEqual([
      {
        ref: { pool: 'wep', member: '10.0.0.1:80' },
        reason: 'there is no pool wep',
      },
    ])
  })
})
