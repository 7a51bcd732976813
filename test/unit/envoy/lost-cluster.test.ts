import { describe, expect, test } from 'vitest'
import { startDrain } from 'drainable'
import { callbackEndpoints, envoy } from 'drainable/envoy'
import { startFake, type FakeOptions } from 'drainable/testing/envoy'
import { eventually } from '../../support/eventually.js'
import { ctx, names, setOf } from './web-set.js'

const ref = { pool: 'web', member: names[0]! }

/** The set of `web` with its first endpoint drained. */
function drainedSet() {
  const set = setOf(names)
  const [endpoint] = set.endpoints[0]?.lb_endpoints ?? []
  Object.assign(endpoint ?? {}, { health_status: 'DRAINING' })
  return set
}

/** Two proxies; the first has the cluster. The set is drained in it, as its control plane would do. */
async function stage(second: FakeOptions, cluster = 'web') {
  const services = { [cluster]: 'web' }
  const first = await startFake({ pools: { [cluster]: names }, services })
  const other = await startFake({ pools: { web: names }, node: 'envoy-2', ...second })
  await first.setBehind({ ...ref, pool: cluster }, 'drain')
  const set = drainedSet()
  const provide = () =>
    envoy({
      endpoints: callbackEndpoints({
        load: () => Promise.resolve(set),
        publish: () => Promise.resolve(),
      }),
      admin: [first.url, other.url],
    })
  return {
    first,
    other,
    provide,
    scope: async (lb: ReturnType<typeof envoy>) => {
      const { readings } = await lb.observe([ref], ctx())
      return readings[0]?.scopes.find(({ scope }) => scope === other.url)
    },
    [Symbol.asyncDispose]: async () => {
      await first.close()
      await other.close()
    },
  }
}

describe('a proxy that lists no cluster of the set', () => {
  test('counts what a removed one left, for who looks first now', async () => {
    await using it = await stage({})
    const end = await it.other.occupy(ref)
    it.other.removeCluster('web')
    await using lb = it.provide()
    expect(await it.scope(lb)).toMatchObject({
      state: 'read',
      active: 1,
      note: expect.stringContaining('on no listed endpoint') as unknown,
    })
    await end()
    expect(await it.scope(lb)).toMatchObject({ state: 'read', active: 0, inForce: true })
  })

  test('is not in force in the moment in which it loses it', async () => {
    await using it = await stage({})
    await using lb = it.provide()
    await it.scope(lb)
    it.other.removeCluster('web')
    expect(await it.scope(lb)).toMatchObject({
      active: 0,
      inForce: false,
      note: expect.stringContaining('a moment ago') as unknown,
    })
  })

  test.each([
    ['and never had one', { pools: {} }],
    ['and defers its statistics', { pools: {}, deferredStats: true }],
    ['and hides those of others', { pools: {}, hiddenStats: [/cluster\.other\./] }],
  ])('%s: it holds nothing', async (_, second) => {
    await using it = await stage(second)
    await using lb = it.provide()
    expect(await it.scope(lb)).toMatchObject({ state: 'read', active: 0, inForce: true })
  })

  test.each([
    [
      'with statistics hidden',
      { hiddenStats: [/cluster\.web\./] },
      /cluster\.web\.upstream_rq_active/,
    ],
    [
      'without /stats',
      { allowPaths: ['/clusters', '/server_info', '/config_dump'] },
      /\/stats.*allow_paths/,
    ],
  ])('%s is unread, and told why', async (_, second, words) => {
    await using it = await stage({ pools: {}, ...second })
    await using lb = it.provide()
    expect(await it.scope(lb)).toMatchObject({
      state: 'unread',
      note: expect.stringMatching(words) as unknown,
    })
  })

  test('does not count its cluster of that name for another set', async () => {
    const services = { main: 'elsewhere' }
    await using it = await stage({ pools: { main: names }, services }, 'main')
    it.other.send('main')
    await using lb = it.provide()
    expect(await it.scope(lb)).toMatchObject({ state: 'read', active: 0 })
  })

  test('is not enough for a set that no proxy ever had', async () => {
    await using fake = await startFake({ pools: {} })
    const publish = () => Promise.resolve()
    const endpoints = callbackEndpoints({ load: () => Promise.resolve(setOf(names)), publish })
    await using lb = envoy({ endpoints, admin: [fake.url] })
    const run = startDrain(lb, ref, { timeout: '20s' })
    const words = "no proxy lists a cluster fed by the endpoint set 'web'"
    await eventually(() => {
      expect(run.why().map(({ text }) => text)).toContainEqual(expect.stringContaining(words))
    })
    await run.close()
  })
})

test('a removed cluster with work counts for its own set alone', async () => {
  await using fake = await startFake({ pools: { web: names, api: names } })
  const api = { pool: 'api', member: names[0]! }
  for (const drained of [ref, api]) await fake.setBehind(drained, 'drain')
  const sets = ['web', 'api'].map((cluster_name) => ({ ...drainedSet(), cluster_name }))
  const publish = () => Promise.resolve()
  const endpoints = callbackEndpoints({ load: () => Promise.resolve(sets), publish })
  await using lb = envoy({ endpoints, admin: [fake.url] })
  const active = async () => {
    const { readings } = await lb.observe([ref, api], ctx())
    return readings.map(({ scopes }) => scopes[0]?.active)
  }
  const ends = [await fake.occupy(ref), await fake.occupy(api)]
  expect(await active()).toEqual([1, 1])
  fake.removeCluster('api')
  expect(await active()).toEqual([1, 1])
  for (const end of ends) await end()
})

test('without traffic statistics yet, a removed endpoint holds nothing', async () => {
  await using fake = await startFake({ pools: { web: names }, deferredStats: true })
  let members: readonly string[] = names
  const sink = callbackEndpoints({
    load: () => Promise.resolve(setOf(members)),
    publish: () => Promise.resolve(),
  })
  await using lb = envoy({ endpoints: sink, admin: [fake.url] })
  await lb.observe([ref], ctx())
  members = names.slice(1)
  await fake.setBehind(ref, 'gone')
  const { readings } = await lb.observe([ref], ctx())
  expect(readings[0]?.scopes).toMatchObject([{ state: 'read', active: 0 }])
})
