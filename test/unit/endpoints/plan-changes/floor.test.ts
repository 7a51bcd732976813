import fc from 'fast-check'
import { type DesiredMember, type PlanOptions } from 'drainable/endpoints'
import type { PresentReading } from 'drainable/provider'
import { describe, expect, test } from 'vitest'
import { a, b, gentle, plan, reading, short, snapshotOf, wish } from '../plan-support.js'

describe('an empty or unsynced list', () => {
  test('changes nothing, and that is said for every member', () => {
    const { changes, held } = plan([], snapshotOf(a, b))
    expect(changes).toEqual([])
    expect(held.map(({ ref }) => ref.member)).toEqual(['a', 'b'])
    expect(held[0]?.reason).toContain('allowEmpty')
  })

  test('is acted on with allowEmpty, down to the given floor', () => {
    expect(short([], snapshotOf(a, b), { allowEmpty: true })).toEqual(['a drain', 'b drain'])
    expect(short([], snapshotOf(a, b), { allowEmpty: true, keepReady: 1 })).toEqual([
      'a held',
      'b held',
    ])
  })

  test('of one pool does not affect another pool', () => {
    const api = { ...reading('z', '10.0.0.7'), ref: { pool: 'api', member: 'z' } }
    expect(
      short([wish('10.0.0.1', 'serve')], snapshotOf(a, api), { pools: ['web', 'api'] }),
    ).toEqual(['z held'])
  })

  test('is never acted on with synced: false, even with allowEmpty', () => {
    const options = { synced: false, allowEmpty: true, keepReady: 0 }
    expect(short([], snapshotOf(a), options)).toEqual(['a held'])
    expect(short([wish('10.0.0.1', 'drain')], snapshotOf(a), options)).toEqual(['a held'])
  })
})

describe('keepReady', () => {
  const all = (state: DesiredMember['state'], more: Partial<DesiredMember> = {}): DesiredMember[] =>
    ['10.0.0.1', '10.0.0.2'].map((address) => wish(address, state, more))

  test('keeps the last member that would serve', () => {
    const { changes, held } = plan(all('drain'), snapshotOf(a, b))
    expect(changes.map(({ ref }) => ref.member)).toEqual(['a'])
    expect(held).toEqual([
      { ref: b.ref, reason: 'wants drain, but keepReady is 1 and 1 would serve in this pool' },
    ])
  })

  test('as 0 keeps none, as 2 keeps both', () => {
    expect(short(all('drain'), snapshotOf(a, b), { keepReady: 0 })).toEqual(['a drain', 'b drain'])
    expect(short(all('drain'), snapshotOf(a, b), { keepReady: 2 })).toEqual(['a held', 'b held'])
  })

  test('keeps the last member that works, beside one that no check has passed yet', () => {
    const fresh = reading('b', '10.0.0.2', { health: 'unknown' })
    const desired = [wish('10.0.0.1', 'drain'), wish('10.0.0.2', 'serve')]
    expect(plan(desired, snapshotOf(a, fresh))).toMatchObject({
      changes: [],
      held: [{ ref: a.ref, reason: expect.stringContaining('no check has passed') as unknown }],
    })
    const unchecked = reading('b', '10.0.0.2', { health: 'unchecked' })
    expect(short(desired, snapshotOf(a, unchecked))).toEqual(['a drain'])
  })

  test.each<[string, readonly DesiredMember[]]>([
    ['is absent', [wish('10.0.0.1', 'absent'), wish('10.0.0.2', 'serve')]],
    [
      'is absent, and serves on',
      [wish('10.0.0.1', 'absent', { serving: true }), wish('10.0.0.2', 'serve')],
    ],
    ['is not listed', [wish('10.0.0.2', 'serve')]],
  ])('keeps the last member that works where it %s, beside an unproved one', (_name, desired) => {
    const fresh = reading('b', '10.0.0.2', { health: 'unknown' })
    expect(short(desired, snapshotOf(a, fresh))).toEqual(['a held'])
    expect(short(desired, snapshotOf(a, reading('b', '10.0.0.2')))).not.toContain('a held')
    expect(
      short(desired, snapshotOf(reading('a', '10.0.0.1', { health: 'down' }), fresh)),
    ).not.toContain('a held')
  })

  test('counts members alike where no check has passed for any of them', () => {
    const fresh = [reading('a', '10.0.0.1', { health: 'unknown' })]
    fresh.push(reading('b', '10.0.0.2', { health: 'unknown' }))
    expect(short(all('drain'), snapshotOf(...fresh))).toEqual(['a drain', 'b held'])
  })

  test.each<[string, Partial<PresentReading>]>([
    ['down', { health: 'down' }],
    ['weight 0', { weight: 0 }],
    ['already draining', { own: 'drain' }],
    ['under an inherited drain', { inherited: 'drain', serves: false }],
  ])('does not count a member that is %s, which may be held', (_name, more) => {
    const other = reading('b', '10.0.0.2', more)
    expect(
      short([wish('10.0.0.1', 'drain'), wish('10.0.0.2', 'serve')], snapshotOf(a, other), {
        owns: (r) => r.ref.member === 'a',
      }),
    ).toContain('a held')
    const dead = [wish('10.0.0.1', 'serve'), wish('10.0.0.2', 'absent')]
    expect(short(dead, snapshotOf(a, { ...other, ...gentle }))).toContain('b maint')
  })

  test('does not count a member whose endpoint is gone', () => {
    const desired = [wish('10.0.0.1', 'drain'), wish('10.0.0.2', 'drain', { serving: false })]
    expect(short(desired, snapshotOf(a, b))).toEqual(['b drain', 'a held'])
  })

  test('allows a hold of a gone member while one that counts is left', () => {
    const desired = [wish('10.0.0.1', 'serve'), wish('10.0.0.2', 'drain', { serving: false })]
    for (const keepReady of [1, 2, 5]) {
      expect(short(desired, snapshotOf(a, b), { keepReady })).toEqual(['b drain'])
      expect(short([wish('10.0.0.1', 'serve')], snapshotOf(a, b), { keepReady })).toEqual([
        'b drain',
      ])
    }
  })

  test('allows no hold of a gone member with none left that serves', () => {
    const desired = [wish('10.0.0.1', 'drain'), wish('10.0.0.2', 'drain', { serving: false })]
    for (const more of [{ health: 'down' }, { weight: 0 }, { own: 'drain' }] as const) {
      const other = reading('a', '10.0.0.1', more)
      expect(short(desired, snapshotOf(other, b), { keepReady: 2 })).toContain('b held')
    }
  })

  test('keeps all gone members until another one serves', () => {
    expect(short(all('drain', { serving: false }), snapshotOf(a, b))).toEqual(['a held', 'b held'])
    const fresh = reading('c', '10.0.0.3')
    const desired = [...all('drain', { serving: false }), wish('10.0.0.3', 'serve')]
    expect(short(desired, snapshotOf(a, b, fresh))).toEqual(['a drain', 'b drain'])
  })

  test('does not count a member that is only about to be added or opened', () => {
    const back = reading('c', '10.0.0.3', { own: 'drain' })
    const desired = [
      wish('10.0.0.1', 'drain'),
      wish('10.0.0.3', 'serve'),
      wish('10.0.0.4', 'serve'),
    ]
    expect(short(desired, snapshotOf(a, back))).toEqual(['c restore', '10.0.0.4:80 add', 'a held'])
  })

  test('is never crossed, and gone members go while another one counts', () => {
    const state = fc.constantFrom('ready', 'drain', 'maint')
    const member = fc.record({
      own: state,
      health: fc.constantFrom('up', 'down'),
      weight: fc.constantFrom(0, 1, undefined),
      wanted: fc.constantFrom('serve', 'drain', 'dead', 'absent', 'vanished'),
    })
    fc.assert(
      fc.property(
        fc.array(member, { minLength: 1, maxLength: 6 }),
        fc.nat({ max: 3 }),
        (members, keepReady) => {
          const readings = members.map(({ own, health, weight }, i) =>
            reading(`m${i}`, `10.0.0.${i}`, {
              own: own,
              health: health,
              ...(weight === undefined ? {} : { weight }),
            }),
          )
          const desired = members.flatMap(({ wanted }, i) => {
            if (wanted === 'vanished') return []
            const dead = wanted === 'dead'
            const to = dead ? 'drain' : wanted
            return [wish(`10.0.0.${i}`, to, { serving: !dead })]
          })
          const { changes } = plan(desired, snapshotOf(...readings), { keepReady })
          const held = new Set(
            changes.filter(({ kind }) => kind === 'hold').map(({ ref }) => ref.member),
          )
          const takesWork = (i: number): boolean =>
            readings[i]!.serves && readings[i]!.health !== 'down' && readings[i]!.weight !== 0
          const isLive = (i: number): boolean => /serve|drain/.test(members[i]!.wanted)
          const places = members.map((_, i) => i).filter(takesWork)
          const live = places.filter(isLive)
          const kept = live.filter((i) => !held.has(`m${i}`))
          if (kept.length < live.length) expect(kept.length).toBeGreaterThanOrEqual(keepReady)
          const dead = places.filter((i) => !isLive(i))
          const mayGo = desired.length > 0 && (live.length > 0 || keepReady === 0)
          for (const i of dead) expect(held.has(`m${i}`)).toBe(mayGo)
          expect(new Set(changes.map(({ ref }) => ref.member)).size).toBe(changes.length)
        },
      ),
      { numRuns: 2_000 },
    )
  })
})

describe('owns', () => {
  const owns: PlanOptions['owns'] = (one) => one.ref.member.startsWith('ctl-')
  const ours = reading('ctl-1', '10.0.0.1')

  test('leaves the others alone and reports them', () => {
    const stranger = reading('hand-made', '10.0.0.8')
    const { changes, held } = plan([wish('10.0.0.1', 'serve')], snapshotOf(ours, stranger), {
      owns,
    })
    expect(changes).toEqual([])
    expect(held[0]).toMatchObject({ ref: stranger.ref })
    expect(held[0]?.reason).toMatch(/^foreign: left alone in ready, although: no endpoint/)
  })

  test('does not overrule an operator who drained a member', () => {
    const drained = reading('a', '10.0.0.1', { own: 'maint' })
    expect(short([wish('10.0.0.1', 'serve')], snapshotOf(drained), { owns })).toEqual(['a held'])
  })

  test('counts members of others for the floor', () => {
    const stranger = reading('hand-made', '10.0.0.8')
    const desired = [wish('10.0.0.1', 'drain'), wish('10.0.0.8', 'serve')]
    expect(short(desired, snapshotOf(ours, stranger), { owns })).toContain('ctl-1 drain')
  })
})
