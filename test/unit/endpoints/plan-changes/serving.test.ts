import { formatPlan, type PlanOptions } from 'drainable/endpoints'
import type { PresentReading } from 'drainable/provider'
import { describe, expect, test } from 'vitest'
import {
  a,
  b,
  capabilities,
  gentle,
  plan,
  reading,
  short,
  snapshotOf,
  wish,
} from '../plan-support.js'

describe('an endpoint that still serves', () => {
  test('is held in drain, with the identity that was found', () => {
    const { changes, steps } = plan(
      [wish('10.0.0.1', 'drain'), wish('10.0.0.2', 'serve')],
      snapshotOf(a, b),
    )
    expect(changes).toEqual([{ kind: 'hold', ref: a.ref, identity: a.identity, to: 'drain' }])
    expect(steps[0]?.reason).toBe('wants drain')
  })

  test.each(['drain', 'maint'] as const)('is left as it is in %s: a hold never lowers', (own) => {
    const desired = [wish('10.0.0.1', 'drain'), wish('10.0.0.2', 'serve')]
    expect(short(desired, snapshotOf(reading('a', '10.0.0.1', { own }), b))).toEqual([])
  })

  test.each(['drain', 'maint'] as const)('is made ready again from %s', (own) => {
    const { changes } = plan(
      [wish('10.0.0.1', 'serve')],
      snapshotOf(reading('a', '10.0.0.1', { own })),
    )
    expect(changes).toEqual([
      { kind: 'restore', ref: a.ref, identity: a.identity, expect: own, to: 'ready' },
    ])
  })

  test('needs no change if it is as wished', () => {
    const found = plan([wish('10.0.0.1', 'serve')], snapshotOf(a))
    expect(found).toEqual({ changes: [], steps: [], held: [] })
    expect(formatPlan(found)).toBe('nothing to change')
  })

  test('that inherits a drain is reported, since its own state is ready', () => {
    const under = reading('a', '10.0.0.1', { inherited: 'drain', serves: false })
    const { held } = plan([wish('10.0.0.1', 'serve')], snapshotOf(under))
    expect(held[0]?.reason).toContain('inherits drain')
  })

  test('in an unknown state is left alone', () => {
    const odd = reading('a', '10.0.0.1', { own: 'unknown' })
    expect(
      short([wish('10.0.0.1', 'drain'), wish('10.0.0.2', 'serve')], snapshotOf(odd, b)),
    ).toEqual(['a held'])
  })
})

describe('an endpoint that does not answer any more', () => {
  const dead = [wish('10.0.0.1', 'drain', { serving: false }), wish('10.0.0.2', 'serve')]
  const absent = [wish('10.0.0.1', 'absent'), wish('10.0.0.2', 'serve')]
  const vanished = [wish('10.0.0.2', 'serve')]

  test.each([
    ['not serving', dead],
    ['excluded', absent],
    ['vanished', vanished],
  ])('%s: in maint if maint keeps established work', (_name, desired) => {
    expect(short(desired, snapshotOf({ ...a, ...gentle }, b))).toEqual(['a maint'])
    expect(short(desired, snapshotOf(a, b), { capabilities })).toEqual(['a maint'])
  })

  test.each<[PresentReading['maint'], PlanOptions['gone'], string]>([
    ['gentle', undefined, 'maint'],
    ['gentle', 'maint', 'maint'],
    ['gentle', 'drain', 'drain'],
    ['cuts', undefined, 'drain'],
    ['cuts', 'maint', 'drain'],
    ['none', 'maint', 'drain'],
    ['unknown', undefined, 'drain'],
    ['unknown', 'maint', 'maint'],
    [undefined, undefined, 'drain'],
    [undefined, 'maint', 'maint'],
    [undefined, 'drain', 'drain'],
  ])('maint %s, gone %s: %s', (maint, gone, level) => {
    const one = maint === undefined ? a : { ...a, maint }
    expect(short(vanished, snapshotOf(one, b), gone === undefined ? {} : { gone })).toEqual([
      `a ${level}`,
    ])
  })

  test('is judged by the reading rather than the capability, with the reason', () => {
    const { steps } = plan(vanished, snapshotOf({ ...a, maint: 'cuts' }, b), {
      capabilities,
    })
    expect(steps[0]?.change).toMatchObject({ to: 'drain' })
    expect(steps[0]?.reason).toBe(
      'no endpoint has its address 10.0.0.1:80 any more; drain, because maint would cut its established work',
    )
  })

  test('is raised from drain to maint', () => {
    const draining = reading('a', '10.0.0.1', { own: 'drain', ...gentle })
    expect(short(dead, snapshotOf(draining, b))).toEqual(['a maint'])
  })

  test('is drained without maint, and reported without both', () => {
    const can = { maint: 'gentle', add: true, remove: true } as const
    const drains = { capabilities: { ...can, ladder: ['ready', 'drain'] as const } }
    expect(short(vanished, snapshotOf(a, b), drains)).toEqual(['a drain'])
    const nothing = { capabilities: { ...can, ladder: ['ready'] as const } }
    expect(short(vanished, snapshotOf(a, b), nothing)).toEqual(['a held'])
  })
})
