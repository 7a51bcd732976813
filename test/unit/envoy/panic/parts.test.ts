import { describe, expect, test } from 'vitest'
import { callbackEndpoints, envoy, type EnvoyOptions } from 'drainable/envoy'
import { grpcEndpoints } from 'drainable/envoy/grpc'
import { startFake, type FakeOptions } from 'drainable/testing/envoy'
import { parseClusters } from '../../../../src/adapters/envoy/codec/config-dump.js'
import { JsonAssignment } from '../../../../src/adapters/envoy/codec/json.js'
import { subsetsOf } from '../../../../src/adapters/envoy/read/subsets.js'
import { systemClock } from '../../../../src/provider/clock.js'
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const ctx = () => ({ signal: AbortSignal.timeout(10_000), clock: systemClock })

interface Member {
  readonly status?: string
  readonly labels?: Readonly<Record<string, unknown>>
}

const setOf = (members: readonly Member[]) => ({
  cluster_name: 'web',
  endpoints: [
    {
      lb_endpoints: members.map(({ status, labels }, i) => ({
        endpoint: { address: { socket_address: { address: `10.0.0.${i + 1}`, port_value: 80 } } },
        ...(status === undefined ? {} : { health_status: status }),
        ...(labels === undefined ? {} : { metadata: { filter_metadata: { 'envoy.lb': labels } } }),
      })),
    },
  ],
})
const refOf = (i: number) => ({ pool: 'web', member: `10.0.0.${i}:80` })

/** A set in a file that a fake watches; another client may write it too. */
async function stage(members: readonly Member[], options: FakeOptions = {}) {
  const dir = await mkdtemp(join(tmpdir(), 'drainable-envoy-'))
  const file = join(dir, 'web.json')
  let set: unknown = setOf(members)
  let version = 0
  const write = async (next: unknown): Promise<void> => {
    set = next
    await writeFile(
      `${file}.new`,
      JSON.stringify({ version_info: `${++version}`, resources: [next] }),
    )
    await rename(`${file}.new`, file)
  }
  await write(set)
  const fake = await startFake({ pools: { web: [] }, eds: { file }, ...options })
  const sink = callbackEndpoints({ load: () => Promise.resolve(set), publish: write })
  const provide = (more: Partial<EnvoyOptions> = {}) =>
    envoy({ endpoints: sink, admin: [fake.url], ...more })
  return {
    fake,
    provide,
    write,
    hold: async (lb: ReturnType<typeof envoy>, i: number) =>
      (await lb.apply([{ kind: 'hold', ref: refOf(i), to: 'drain' }], ctx()))[0],
    scope: async (lb: ReturnType<typeof envoy>, i: number) =>
      (await lb.observe([refOf(i)], ctx())).readings[0]?.scopes[0],
    close: async () => {
      await fake.close()
      await rm(dir, { recursive: true })
    },
  }
}

describe('the last member of a subset', () => {
  const labelled = ['a', 'b', 'b', 'b'].map((v) => ({ labels: { v } }))

  test('is not drained, and the subset is named', async () => {
    const it = await stage(labelled, { subsets: [['v']] })
    await using lb = it.provide()
    const result = await it.hold(lb, 1)
    expect(result).toMatchObject({ status: 'rejected', error: { code: 'REJECTED' } })
    expect(result !== undefined && 'error' in result && result.error.message).toContain(
      'the subset v=a of cluster web',
    )
    expect((await it.hold(lb, 2))?.status).toBe('applied')
    await it.close()
  })

  test('is not in force if it was drained anyway', async () => {
    const it = await stage(labelled, { subsets: [['v']] })
    await using lb = it.provide({ onPanic: 'allow' })
    await it.hold(lb, 1)
    expect(it.fake.send('web', { v: 'a' })?.member).toBe('10.0.0.1:80')
    await expect
      .poll(async () => await it.scope(lb, 1))
      .toMatchObject({ inForce: false, note: expect.stringContaining('the subset v=a') as unknown })
    await it.close()
  })

  test('does not keep another member from its drain if its subset panics', async () => {
    const it = await stage([{ status: 'DRAINING', labels: { v: 'a' } }, ...labelled.slice(1)], {
      subsets: [['v']],
    })
    await using lb = it.provide()
    await it.hold(lb, 2)
    await expect.poll(async () => (await it.scope(lb, 2))?.inForce).toBe(true)
    it.fake.send('web', { v: 'a' })
    expect((await it.scope(lb, 2))?.inForce).toBe(true)
    await it.close()
  })
})

describe('subsets by their rules', () => {
  const endpoints = JsonAssignment.parse(
    setOf([
      { labels: { stage: 'prod', version: '1', roles: ['x', 'y'] } },
      { labels: { version: '1', stage: 'prod' } },
      { labels: { version: 1, stage: 'prod' } },
      {},
    ]),
  ).endpoints
  const sizes = (selectors: string[][], listAsAny = false, fallback?: Record<string, string>) =>
    Object.fromEntries(
      subsetsOf(endpoints, { selectors, listAsAny, fallback }).map(({ name, members }) => [
        name,
        members.size,
      ]),
    )

  test.each([
    // The number 1 and the text are two subsets: seen on 1.40.0.
    ['one key', [['version']], false, undefined, { 'version="1"': 2, 'version=1': 1 }],
    [
      'two keys, in any order',
      [['version', 'stage']],
      false,
      undefined,
      { 'stage=prod, version="1"': 2, 'stage=prod, version=1': 1 },
    ],
    ['a list is one value', [['roles']], false, undefined, { 'roles=["x","y"]': 1 }],
    ['a list as any', [['roles']], true, undefined, { 'roles=x': 1, 'roles=y': 1 }],
    ['the default subset', [], false, { stage: 'prod' }, { default_subset: 3 }],
  ] as const)('%s', (_, selectors, listAsAny, fallback, expected) => {
    expect(
      sizes(
        selectors.map((keys) => [...keys]),
        listAsAny,
        fallback,
      ),
    ).toEqual(expected)
  })

  test('selectors are found in the cluster and in its policies', () => {
    const typed = (type: string, config: object) => ({
      policies: [
        { typed_extension_config: { typed_config: { '@type': `type/${type}`, ...config } } },
      ],
    })
    const inner = typed('envoy.subset.v3.Subset', { subset_selectors: [{ keys: ['z'] }] })
    const policy = typed('envoy.wrr_locality.v3.X', { endpoint_picking_policy: inner })
    const cluster = (more: object) => ({ cluster: { name: 'web', type: 'EDS', ...more } })
    const [plain, nested] = [
      { lb_subset_config: { subset_selectors: [{ keys: ['v'], fallback_keys_subset: ['w'] }] } },
      { load_balancing_policy: policy },
    ].map((more) => parseClusters(JSON.stringify({ configs: [cluster(more)] })).eds[0])
    expect(plain?.subsets?.selectors).toEqual([['v'], ['w']])
    expect(nested?.subsets?.selectors).toEqual([['z']])
  })
})

describe('the difference between what Envoy counts and shows', () => {
  test('UNHEALTHY to DRAINING is counted as before, so not in force', async () => {
    const it = await stage([{}, { status: 'UNHEALTHY' }, { status: 'UNHEALTHY' }])
    await using lb = it.provide({ onPanic: 'allow' })
    await it.write(setOf([{}, { status: 'DRAINING' }, { status: 'DRAINING' }]))
    await expect
      .poll(async () => await it.scope(lb, 2))
      .toMatchObject({ inForce: false, note: expect.stringContaining('panic') as unknown })
    const sent = Array.from({ length: 3 }, () => it.fake.send('web')?.member)
    expect(sent).toContain('10.0.0.2:80')
    await it.close()
  })

  test('a drain of an unhealthy member in panic is refused beforehand', async () => {
    const it = await stage([{}, { status: 'UNHEALTHY' }, { status: 'UNHEALTHY' }])
    await using lb = it.provide()
    expect(await it.hold(lb, 2)).toMatchObject({ status: 'rejected', error: { code: 'REJECTED' } })
    await it.close()
  })

  test('a drain of a member with a failing check is refused in panic', async () => {
    const it = await stage([{}, {}, {}], { activeChecks: true })
    await using lb = it.provide()
    for (const i of [2, 3]) it.fake.setHealth(refOf(i), false)
    expect(await it.hold(lb, 2)).toMatchObject({ status: 'rejected', error: { code: 'REJECTED' } })
    await it.close()
  })

  const HIDDEN = [/membership/, /panic/]

  test('such a drain is counted as before, even with hidden gauges', async () => {
    const it = await stage([{}, {}, {}], { activeChecks: true, hiddenStats: HIDDEN })
    await using lb = it.provide({ onPanic: 'allow' })
    for (const i of [2, 3]) it.fake.setHealth(refOf(i), false)
    await it.hold(lb, 2)
    await expect
      .poll(async () => await it.scope(lb, 2))
      .toMatchObject({
        inForce: false,
        note: expect.stringContaining('counted as before') as unknown,
      })
    expect(Array.from({ length: 3 }, () => it.fake.send('web')?.member)).toContain('10.0.0.2:80')
    for (const i of [2, 3]) it.fake.setHealth(refOf(i), true)
    await expect.poll(async () => (await it.scope(lb, 2))?.inForce).toBe(true)
    await it.close()
  })

  test('our own UNHEALTHY to DRAINING is counted as before without gauges', async () => {
    const ill = { status: 'UNHEALTHY' }
    const it = await stage([{}, ill, ill], { hiddenStats: HIDDEN })
    await using lb = it.provide({ onPanic: 'allow' })
    await it.scope(lb, 2)
    await it.hold(lb, 2)
    await expect
      .poll(async () => await it.scope(lb, 2))
      .toMatchObject({
        inForce: false,
        note: expect.stringContaining('counted as before') as unknown,
      })
    await it.close()
  })

  test('unexplained requests in panic take it out of force at that look', async () => {
    const it = await stage([{}, {}, {}, {}], { hiddenStats: [/membership/] })
    await using lb = it.provide()
    await it.hold(lb, 1)
    await expect.poll(async () => (await it.scope(lb, 1))?.inForce).toBe(true)
    it.fake.countPanic('web')
    expect(await it.scope(lb, 1)).toMatchObject({ inForce: false })
    await expect.poll(async () => (await it.scope(lb, 1))?.inForce).toBe(true)
    await it.close()
  })

  test('requests in panic are reported on each drained member', async () => {
    const it = await stage([{}, {}, {}, {}, {}, {}, {}], { hiddenStats: [/membership/] })
    await using lb = it.provide()
    for (const i of [1, 2]) {
      await it.hold(lb, i)
      await expect.poll(async () => (await it.scope(lb, i))?.inForce).toBe(true)
    }
    it.fake.countPanic('web')
    // A change of a third one looks at the proxies too.
    await it.hold(lb, 3)
    for (const i of [1, 2]) expect(await it.scope(lb, i)).toMatchObject({ inForce: false })
    for (const i of [1, 2])
      await expect.poll(async () => (await it.scope(lb, i))?.inForce).toBe(true)
    await it.close()
  })
})

describe('clusters and policies', () => {
  test('a cluster that arrives by CDS is read in the same look', async () => {
    const it = await stage([{}, {}, {}, {}], { services: { late: 'web' } })
    await using lb = it.provide()
    await it.hold(lb, 1)
    await it.scope(lb, 1)
    await it.fake.addCluster('late')
    await it.fake.occupy({ pool: 'late', member: '10.0.0.1:80' })
    expect((await it.scope(lb, 1))?.active).toBe(1)
    await it.close()
  })

  test('idle is unverified if requests pick their host, and why() says so', async () => {
    const it = await stage([{}, {}, {}, {}], { overrideHost: true })
    await using lb = it.provide()
    const { readings } = await lb.observe([refOf(1)], ctx())
    expect(readings[0]).toMatchObject({
      unverified: expect.stringContaining('override_host') as unknown,
    })
    await it.close()
  })
})

describe('load reports alone', () => {
  async function byLoads(
    more: Partial<EnvoyOptions> = {},
    initial = [setOf([{}, {}, { status: 'UNHEALTHY' }])],
    member = 1,
  ) {
    const sink = grpcEndpoints({ port: 0, initial, loadInterval: '100ms' })
    const lb = envoy({ endpoints: sink, onPanic: 'allow', ...more })
    await lb.observe('all', ctx())
    const grpc = `http://127.0.0.1:${sink.address?.port}`
    const fake = await startFake({ pools: { web: [] }, eds: { grpc }, loads: grpc })
    const inForce = async () => {
      const { readings } = await lb.observe([refOf(member)], ctx())
      return readings[0]?.scopes.map((scope) => scope.state === 'read' && scope.inForce)
    }
    return { sink, lb, fake, inForce }
  }

  test('show a later panic by what was published', async () => {
    const { sink, lb, fake, inForce } = await byLoads()
    await lb.apply([{ kind: 'hold', ref: refOf(1), to: 'drain' }], ctx())
    await expect.poll(inForce, { timeout: 5_000 }).toEqual([true])
    const down = [{ status: 'DRAINING' }, { status: 'UNHEALTHY' }, { status: 'UNHEALTHY' }]
    await sink.set([setOf(down)])
    await expect.poll(inForce, { timeout: 5_000 }).toEqual([false])
    await lb.close()
    await fake.close()
  })

  // From UNHEALTHY to DRAINING Envoy counts nothing anew: it still weighs on the threshold, 1 of 3.
  test('leave a drain of a member that was UNHEALTHY unverified', async () => {
    const ill = { status: 'UNHEALTHY' }
    const { lb, fake } = await byLoads({}, [setOf([{}, ill, ill])], 2)
    await lb.apply([{ kind: 'hold', ref: refOf(2), to: 'drain' }], ctx())
    const unverified = async () => {
      const { readings } = await lb.observe([refOf(2)], ctx())
      return readings[0]?.present === true ? readings[0].unverified : undefined
    }
    await expect.poll(unverified, { timeout: 5_000 }).toContain('panic mode')
    await lb.close()
    await fake.close()
  })

  test('refuse a refused panic before anything is changed', async () => {
    const ill = { status: 'UNHEALTHY' }
    const { lb, fake } = await byLoads({ onPanic: 'refuse' }, [setOf([{}, ill, ill])], 2)
    const [result] = await lb.apply([{ kind: 'hold', ref: refOf(2), to: 'drain' }], ctx())
    expect(result).toMatchObject({ status: 'rejected', error: { code: 'REJECTED' } })
    await lb.close()
    await fake.close()
  })

  test('use the threshold that the caller gives', async () => {
    const { lb, fake, inForce } = await byLoads({ panicThreshold: 0 })
    await lb.apply([{ kind: 'hold', ref: refOf(1), to: 'drain' }], ctx())
    await lb.apply([{ kind: 'hold', ref: refOf(2), to: 'drain' }], ctx())
    await expect.poll(inForce, { timeout: 5_000 }).toEqual([true])
    await lb.close()
    await fake.close()
  })

  test('leave health unchecked without health checks', async () => {
    const { lb, fake } = await byLoads()
    const { readings } = await lb.observe([refOf(1)], ctx())
    expect(readings[0]).toMatchObject({ health: 'unchecked' })
    await lb.close()
    await fake.close()
  })
})
