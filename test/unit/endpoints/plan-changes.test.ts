import fc from 'fast-check'
import {
  formatPlan,
  mapEndpoints,
  toDesired,
  type DesiredMember,
  type Plan,
  type PlanOptions,
} from 'drainable/endpoints'
import type { AdminState, LoadScope, PresentReading, Snapshot } from 'drainable/provider'
import { describe, expect, test } from 'vitest'
import { a, b, gentle, idleScope, plan, reading, short, snapshotOf, wish } from './plan-support.js'

describe('what still serves', () => {
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

  test('and is as wished: nothing', () => {
    const found = plan([wish('10.0.0.1', 'serve')], snapshotOf(a))
    expect(found).toEqual({ changes: [], steps: [], held: [] })
    expect(formatPlan(found)).toBe('nothing to change')
  })

  test('but inherits a drain: said, since its own state is ready', () => {
    const under = reading('a', '10.0.0.1', { inherited: 'drain', serves: false })
    const { held } = plan([wish('10.0.0.1', 'serve')], snapshotOf(under))
    expect(held[0]?.reason).toContain('inherits drain')
  })

  test('in a state that is not understood: left alone', () => {
    const odd = reading('a', '10.0.0.1', { own: 'unknown' })
    expect(
      short([wish('10.0.0.1', 'drain'), wish('10.0.0.2', 'serve')], snapshotOf(odd, b)),
    ).toEqual(['a held'])
  })
})

describe('what does not answer any more', () => {
  const dead = [wish('10.0.0.1', 'drain', { serving: false }), wish('10.0.0.2', 'serve')]
  const absent = [wish('10.0.0.1', 'absent'), wish('10.0.0.2', 'serve')]
  const vanished = [wish('10.0.0.2', 'serve')]

  test.each([
    ['not serving', dead],
    ['excluded', absent],
    ['vanished', vanished],
  ])('%s: in maint where maint keeps established work', (_name, desired) => {
    expect(short(desired, snapshotOf({ ...a, ...gentle }, b))).toEqual(['a maint'])
    const capabilities = {
      ladder: ['ready', 'drain', 'maint'],
      maint: 'gentle',
      add: true,
      remove: true,
    } as const
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

  test('the reading wins over the capability, and the reason says why', () => {
    const capabilities = {
      ladder: ['ready', 'drain', 'maint'],
      maint: 'gentle',
      add: true,
      remove: true,
    } as const
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

  test('a product without maint gets drain; one without either is said', () => {
    const can = { maint: 'gentle', add: true, remove: true } as const
    const drains = { capabilities: { ...can, ladder: ['ready', 'drain'] as const } }
    expect(short(vanished, snapshotOf(a, b), drains)).toEqual(['a drain'])
    const nothing = { capabilities: { ...can, ladder: ['ready'] as const } }
    expect(short(vanished, snapshotOf(a, b), nothing)).toEqual(['a held'])
  })
})

describe('removing', () => {
  const desired = [wish('10.0.0.2', 'serve')]
  const inState = (own: AdminState, scope: Partial<LoadScope> = {}): Snapshot =>
    snapshotOf(
      reading('a', '10.0.0.1', { own, ...gentle, scopes: [{ ...idleScope, ...scope }] }),
      b,
    )

  test('never in one step: a vanished member is held first', () => {
    expect(short(desired, inState('ready', { released: true }), { idle: () => true })).toEqual([
      'a maint',
    ])
  })

  test('not on zeros of one snapshot', () => {
    const { changes, held } = plan(desired, inState('maint'))
    expect(changes).toEqual([])
    expect(held[0]?.reason).toContain('in maint and not proved idle (0 in flight, 0 queued)')
  })

  test('on the word of the caller, who has a report', () => {
    const { changes } = plan(desired, inState('maint'), { idle: () => true })
    expect(changes).toEqual([{ kind: 'remove', ref: a.ref, identity: a.identity }])
  })

  test('on the word of every process while the door is closed', () => {
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

  test('only what is gone: an unready endpoint keeps its place', () => {
    const unready = [...desired, wish('10.0.0.1', 'drain', { serving: false })]
    expect(short(unready, inState('maint'), { idle: () => true })).toEqual([])
  })

  test('what a product can not take out is said', () => {
    const capabilities = {
      ladder: ['ready', 'drain', 'maint'],
      maint: 'gentle',
      add: true,
      remove: false,
    } as const
    expect(short(desired, inState('maint'), { idle: () => true, capabilities })).toEqual(['a held'])
  })
})

describe('adding', () => {
  test('what serves and is not there, named by its address unless named', () => {
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

  test('never what drains or is left out', () => {
    expect(short([wish('10.0.0.1', 'drain'), wish('10.0.0.3', 'absent')], snapshotOf())).toEqual([])
  })

  test.each<[string, DesiredMember, Partial<PlanOptions>]>([
    ['ifAbsent skip', wish('10.0.0.9', 'serve', { ifAbsent: 'skip' }), {}],
    ['no port', { pool: 'web', address: '10.0.0.9', state: 'serve' }, {}],
    ['no address', { pool: 'web', member: 'nine', state: 'serve' }, {}],
    ['a name that is taken', wish('10.0.0.9', 'serve', { member: 'a' }), {}],
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
  ])('%s: said instead', (_name, one, options) => {
    const { changes, held } = plan([one, wish('10.0.0.1', 'serve')], snapshotOf(a), options)
    expect(changes).toEqual([])
    expect(held).toHaveLength(1)
  })

  test('a pool that is not there is said', () => {
    const wanted = [{ ...wish('10.0.0.1', 'serve'), pool: 'wep' }]
    const { changes, held } = plan(wanted, snapshotOf(a), { pools: ['wep'] })
    expect(changes).toEqual([])
    expect(held).toEqual([
      {
        ref: { pool: 'wep', member: '10.0.0.1:80' },
        reason: 'there is no pool wep in the snapshot',
      },
    ])
  })
})

describe('matching', () => {
  test('IPv6 in any spelling', () => {
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

  test('two port names on one number: who wants more of it counts', () => {
    const both = [wish('10.0.0.1', 'drain'), wish('10.0.0.1', 'serve')]
    expect(short(both, snapshotOf(a))).toEqual([])
    expect(short(both.toReversed(), snapshotOf())).toEqual(['10.0.0.1:80 add'])
  })

  test('by name where no address is given', () => {
    const desired = [
      { pool: 'web', member: 'a', state: 'drain' } as const,
      wish('10.0.0.2', 'serve'),
    ]
    expect(short(desired, snapshotOf(a, b))).toEqual(['a drain'])
  })

  test('a member without an address is told about, never touched', () => {
    const dns = reading('dns', undefined)
    const { changes, held } = plan([wish('10.0.0.1', 'serve')], snapshotOf(a, dns), {
      idle: () => true,
    })
    expect(changes).toEqual([])
    expect(held).toEqual([
      { ref: dns.ref, reason: expect.stringContaining('no address') as string },
    ])
  })

  test('a slot that another address took over is drained, and the name waits', () => {
    const reused = reading('web1', '10.0.0.9')
    const desired = [wish('10.0.0.5', 'serve', { member: 'web1' }), wish('10.0.0.2', 'serve')]
    expect(short(desired, snapshotOf(reused, b))).toEqual(['web1 drain', 'web1 held'])
  })

  test('every balancer of a combined provider that has the pool', () => {
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

  test('a member on port 0 takes the port of the client, so it has none', () => {
    const any = reading('any', '10.0.0.1', { port: 0 })
    expect(short([wish('10.0.0.1', 'serve')], snapshotOf(any))).toEqual([])
  })

  test('many ports of one address are told apart, like a few', () => {
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

describe('empty and unsynced lists', () => {
  test('change nothing, and say so for every member', () => {
    const { changes, held } = plan([], snapshotOf(a, b))
    expect(changes).toEqual([])
    expect(held.map(({ ref }) => ref.member)).toEqual(['a', 'b'])
    expect(held[0]?.reason).toContain('allowEmpty')
  })

  test('allowEmpty means it, and the floor is the one that was given', () => {
    expect(short([], snapshotOf(a, b), { allowEmpty: true })).toEqual(['a drain', 'b drain'])
    expect(short([], snapshotOf(a, b), { allowEmpty: true, keepReady: 1 })).toEqual([
      'a held',
      'b held',
    ])
  })

  test('each pool on its own', () => {
    const api = { ...reading('z', '10.0.0.7'), ref: { pool: 'api', member: 'z' } }
    expect(
      short([wish('10.0.0.1', 'serve')], snapshotOf(a, api), { pools: ['web', 'api'] }),
    ).toEqual(['z held'])
  })

  test('synced: false never acts, even with allowEmpty', () => {
    const options = { synced: false, allowEmpty: true, keepReady: 0 }
    expect(short([], snapshotOf(a), options)).toEqual(['a held'])
    expect(short([wish('10.0.0.1', 'drain')], snapshotOf(a), options)).toEqual(['a held'])
  })
})

describe('keepReady', () => {
  const all = (state: DesiredMember['state'], more: Partial<DesiredMember> = {}): DesiredMember[] =>
    ['10.0.0.1', '10.0.0.2'].map((address) => wish(address, state, more))

  test('the last one that would serve is kept', () => {
    const { changes, held } = plan(all('drain'), snapshotOf(a, b))
    expect(changes.map(({ ref }) => ref.member)).toEqual(['a'])
    expect(held).toEqual([
      { ref: b.ref, reason: 'wants drain, but keepReady is 1 and 1 would serve in this pool' },
    ])
  })

  test('0 keeps none, 2 keeps both', () => {
    expect(short(all('drain'), snapshotOf(a, b), { keepReady: 0 })).toEqual(['a drain', 'b drain'])
    expect(short(all('drain'), snapshotOf(a, b), { keepReady: 2 })).toEqual(['a held', 'b held'])
  })

  test.each<[string, Partial<PresentReading>]>([
    ['down', { health: 'down' }],
    ['weight 0', { weight: 0 }],
    ['already draining', { own: 'drain' }],
    ['under an inherited drain', { inherited: 'drain', serves: false }],
  ])('a member that is %s keeps nothing, and may be held', (_name, more) => {
    const other = reading('b', '10.0.0.2', more)
    expect(
      short([wish('10.0.0.1', 'drain'), wish('10.0.0.2', 'serve')], snapshotOf(a, other), {
        owns: (r) => r.ref.member === 'a',
      }),
    ).toContain('a held')
    const dead = [wish('10.0.0.1', 'serve'), wish('10.0.0.2', 'absent')]
    expect(short(dead, snapshotOf(a, { ...other, ...gentle }))).toContain('b maint')
  })

  test('a member whose endpoint is gone does not count', () => {
    const desired = [wish('10.0.0.1', 'drain'), wish('10.0.0.2', 'drain', { serving: false })]
    expect(short(desired, snapshotOf(a, b))).toEqual(['b drain', 'a held'])
  })

  test('what is gone is held below the floor while one that counts is left', () => {
    const desired = [wish('10.0.0.1', 'serve'), wish('10.0.0.2', 'drain', { serving: false })]
    for (const keepReady of [1, 2, 5]) {
      expect(short(desired, snapshotOf(a, b), { keepReady })).toEqual(['b drain'])
      expect(short([wish('10.0.0.1', 'serve')], snapshotOf(a, b), { keepReady })).toEqual([
        'b drain',
      ])
    }
  })

  test('one left that is down, at weight 0 or held lets nothing gone be held', () => {
    const desired = [wish('10.0.0.1', 'drain'), wish('10.0.0.2', 'drain', { serving: false })]
    for (const more of [{ health: 'down' }, { weight: 0 }, { own: 'drain' }] as const) {
      const other = reading('a', '10.0.0.1', more)
      expect(short(desired, snapshotOf(other, b), { keepReady: 2 })).toContain('b held')
    }
  })

  test('all of them are gone: none is taken until another serves', () => {
    expect(short(all('drain', { serving: false }), snapshotOf(a, b))).toEqual(['a held', 'b held'])
    const fresh = reading('c', '10.0.0.3')
    const desired = [...all('drain', { serving: false }), wish('10.0.0.3', 'serve')]
    expect(short(desired, snapshotOf(a, b, fresh))).toEqual(['a drain', 'b drain'])
  })

  test('one that is only about to be added or made ready does not count yet', () => {
    const back = reading('c', '10.0.0.3', { own: 'drain' })
    const desired = [
      wish('10.0.0.1', 'drain'),
      wish('10.0.0.3', 'serve'),
      wish('10.0.0.4', 'serve'),
    ]
    expect(short(desired, snapshotOf(a, back))).toEqual(['c restore', '10.0.0.4:80 add', 'a held'])
  })

  test('no drain goes below it, and what is gone goes while another counts', () => {
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

  test('the others are reported and left alone', () => {
    const stranger = reading('hand-made', '10.0.0.8')
    const { changes, held } = plan([wish('10.0.0.1', 'serve')], snapshotOf(ours, stranger), {
      owns,
    })
    expect(changes).toEqual([])
    expect(held[0]).toMatchObject({ ref: stranger.ref })
    expect(held[0]?.reason).toMatch(/^foreign: left alone in ready, although: no endpoint/)
  })

  test('a member that an operator drained is not overruled by owns', () => {
    const drained = reading('a', '10.0.0.1', { own: 'maint' })
    expect(short([wish('10.0.0.1', 'serve')], snapshotOf(drained), { owns })).toEqual(['a held'])
  })

  test('strangers count for the floor', () => {
    const stranger = reading('hand-made', '10.0.0.8')
    const desired = [wish('10.0.0.1', 'drain'), wish('10.0.0.8', 'serve')]
    expect(short(desired, snapshotOf(ours, stranger), { owns })).toContain('ctl-1 drain')
  })
})

describe('level-triggered: carrying out a plan leaves nothing to do', () => {
  test('for any set of endpoints, in at most three rounds', () => {
    const tri = fc.constantFrom(true, false, null)
    const endpoint = fc.record({
      addresses: fc.constantFrom(['10.0.0.1'], ['10.0.0.2'], ['10.0.0.3'], ['10.0.0.4']),
      port: fc.constant(80),
      conditions: fc.record({ ready: tri, serving: tri, terminating: tri }),
    })
    const sets = fc.uniqueArray(endpoint, { selector: (e) => e.addresses[0], minLength: 1 })
    fc.assert(
      fc.property(sets, fc.subarray(['10.0.0.1', '10.0.0.5', '10.0.0.6']), (endpoints, there) => {
        let readings = there.map((address) => reading(`${address}:80`, address, gentle))
        const desired = toDesired(mapEndpoints(endpoints), { pool: 'web' })
        const options = { keepReady: 0, idle: () => true }
        for (let round = 0; round < 3; round++) {
          readings = carryOut(readings, plan(desired, snapshotOf(...readings), options).changes)
        }
        expect(plan(desired, snapshotOf(...readings), options).changes).toEqual([])
        const serving = readings.filter(({ serves }) => serves).map(({ address }) => address)
        const wanted = desired
          .filter(({ state }) => state === 'serve')
          .map(({ address }) => address)
        expect(serving.toSorted()).toEqual(wanted.toSorted())
      }),
    )
  })
})

function carryOut(readings: PresentReading[], changes: Plan['changes']): PresentReading[] {
  const after = new Map(readings.map((one) => [one.ref.member, one]))
  for (const change of changes) {
    const { member } = change.ref
    const found = after.get(member)
    if (change.kind === 'add') after.set(member, reading(member, change.address, gentle))
    else if (change.kind === 'remove') after.delete(member)
    else if (found && change.kind === 'hold')
      after.set(member, { ...found, own: change.to, serves: false })
    else if (found && change.kind === 'restore') {
      expect(found.own).toBe(change.expect)
      after.set(member, { ...found, own: change.to, serves: change.to === 'ready' })
    }
  }
  return [...after.values()]
}

describe('formatPlan', () => {
  test('one line per change and per member left alone', () => {
    const desired = [
      wish('10.0.0.1', 'drain'),
      wish('10.0.0.2', 'serve'),
      wish('10.0.0.3', 'serve', { weight: 2 }),
      wish('10.0.0.4', 'serve', { member: 'four' }),
    ]
    const back = reading('b', '10.0.0.2', { own: 'maint' })
    const other = reading('c', '10.0.0.8')
    const text = formatPlan(plan(desired, snapshotOf(a, back, other), { keepReady: 0 }))
    expect(text.split('\n').map((line) => line.replace(/; drain, because .*/, ''))).toEqual([
      '5 changes, 0 left alone',
      '  maint to ready  web/b                     wants serve',
      '  hold in drain   web/c                     no endpoint has its address 10.0.0.8:80 any more',
      '  hold in drain   web/a                     wants drain',
      '  add             web/10.0.0.3:80 weight 2  wants serve',
      '  add             web/four at 10.0.0.4:80   wants serve',
    ])
  })

  test('control characters from outside do not reach the terminal', () => {
    const evil = reading('e\u001b[31mvil\n', '10.0.0.7')
    const text = formatPlan(
      plan([wish('10.0.0.2', 'serve', { reason: 'x\u0007y' })], snapshotOf(evil)),
    )
    expect(text).toContain('web/e [31mvil')
    expect(text).not.toMatch(/[^\P{Cc}\n]/u)
    expect(text).toContain('x y')
  })
})
