import { describe, expect, test } from 'vitest'
import { startDrain } from 'drainable'
import { callbackEndpoints, envoy, restEndpoints } from 'drainable/envoy'
import { startFake } from 'drainable/testing/envoy'
import { JsonAssignment } from '../../../../src/adapters/envoy/codec/json.js'
import { withoutKeys } from '../../../../src/adapters/envoy/codec/proto-json.js'
import { agreed } from '../../../../src/adapters/envoy/sources/adoption.js'
import type { JsonObject } from '../../../../src/kit/json.js'
import { systemClock } from '../../../../src/provider/clock.js'

const ctx = () => ({ signal: AbortSignal.timeout(10_000), clock: systemClock })

interface Member {
  readonly ip: string
  readonly status?: string
  readonly weight?: number
  readonly labels?: Readonly<Record<string, string>>
}

const setOf = (members: readonly Member[]): JsonObject => ({
  cluster_name: 'web',
  endpoints:
    members.length === 0
      ? []
      : [
          {
            locality: {},
            lb_endpoints: members.map(({ ip, status = 'HEALTHY', weight = 1, labels }) => ({
              endpoint: { address: { socket_address: { address: ip, port_value: 80 } } },
              health_status: status,
              ...(labels === undefined
                ? {}
                : { metadata: { filter_metadata: { 'envoy.lb': labels } } }),
              load_balancing_weight: weight,
            })),
          },
        ],
})

const adopt = (...sets: readonly (readonly Member[])[]) =>
  agreed(
    sets.map((members, i) => ({
      name: `p${i + 1}`,
      sets: [JsonAssignment.parse(setOf(members))],
    })),
  ).sets.map((set) => withoutKeys(set.toJson(), '@type'))
const [a, b, c] = ['10.0.0.1', '10.0.0.2', '10.0.0.3'].map((ip) => ({ ip })) as [
  Member,
  Member,
  Member,
]

describe('equal sets of a fleet', () => {
  test.each([
    ['endpoints in another order', [a, b, c], [c, a, b]],
    [
      'metadata in another order',
      [{ ...a, labels: { v: '1', stage: 'prod' } }],
      [{ ...a, labels: { stage: 'prod', v: '1' } }],
    ],
    ['one proxy that has just started', [a, b], []],
  ])('%s', (_, first, second) => {
    expect(adopt(first, second)).toEqual([setOf(first)])
    expect(adopt(second, first)).toHaveLength(1)
  })

  test('are adopted after a crash in mid-push, with DRAINING winning', () => {
    const drained = [a, { ...b, status: 'DRAINING' }, c]
    for (const sets of [
      [drained, [a, b, c]],
      [[a, b, c], drained],
      [[a, b, c], drained, [a, b, { ...c, status: 'UNHEALTHY' }]],
    ]) {
      const text = JSON.stringify(adopt(...sets))
      expect(text.match(/DRAINING/g)).toHaveLength(1)
      expect(text).toContain('"address":"10.0.0.2","port_value":80}}},"health_status":"DRAINING"')
    }
  })

  test('are nothing if all are empty', () => {
    expect(adopt([], [])).toEqual([])
  })
})

describe('different sets of a fleet', () => {
  test.each([
    ['a member more', [a, b], [a, b, c], "'web' has 10.0.0.3:80 only on p2"],
    [
      'another weight',
      [a, b],
      [a, { ...b, weight: 5 }],
      "'web' has 10.0.0.2:80 with another weight",
    ],
  ])('are refused and listed: %s', (_, first, second, words) => {
    expect(() => adopt(first, second)).toThrow(words)
  })

  test('are counted if they are many', () => {
    const many = Array.from({ length: 20 }, (_, i) => ({ ip: `10.0.1.${i}` }))
    expect(() => adopt([a], [a, ...many])).toThrow('and 14 more')
  })
})

test('a fleet in three different moments is adopted without losses', async () => {
  const members = ['10.0.0.1:80', '10.0.0.2:80', '10.0.0.3:80']
  await using one = await startFake({ pools: { web: members } })
  await using two = await startFake({ pools: { web: [...members].reverse() }, node: 'two' })
  await using fresh = await startFake({ pools: { web: [] }, node: 'three' })
  await one.setBehind({ pool: 'web', member: members[1]! }, 'drain')
  await using lb = envoy({
    endpoints: restEndpoints({ port: 0 }),
    admin: [fresh.url, two.url, one.url],
  })
  const { readings } = await lb.observe('all', ctx())
  const own = readings.map((reading) => [reading.ref.member, reading.present && reading.own])
  expect(Object.fromEntries(own)).toEqual({
    '10.0.0.1:80': 'ready',
    '10.0.0.2:80': 'drain',
    '10.0.0.3:80': 'ready',
  })
})

test('a list that is empty for one look loses no proxy, and ends nothing', async () => {
  const members = ['10.0.0.1:80', '10.0.0.2:80', '10.0.0.3:80']
  await using fake = await startFake({ pools: { web: members } })
  const set = setOf(members.map((name) => ({ ip: name.slice(0, -3) })))
  let isEmpty = false
  await using lb = envoy({
    endpoints: callbackEndpoints({
      load: () => Promise.resolve(set),
      publish: async (next) => {
        Object.assign(set, next)
        await fake.setBehind({ pool: 'web', member: members[0]! }, 'drain')
      },
    }),
    admin: () => Promise.resolve(isEmpty ? [] : [fake.url]),
  })
  const ref = { pool: 'web', member: members[0]! }
  const end = await fake.occupy(ref)
  const run = startDrain(lb, ref, { timeout: '50s' })
  await expect.poll(() => run.why().map(({ code }) => code)).toContain('in-flight')
  isEmpty = true
  const { readings } = await lb.observe([ref], ctx())
  expect(readings[0]?.scopes.map(({ scope, state }) => [scope, state])).toEqual([
    [fake.url, 'read'],
  ])
  isEmpty = false
  await end()
  const report = await run.done
  expect(report.members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true, lost: [] })
  await run.close()
})
