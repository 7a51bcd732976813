import { describe, expect, test } from 'vitest'
import { callbackEndpoints, envoy, observedEndpoints, restEndpoints } from 'drainable/envoy'
import { envoyListener } from 'drainable/envoy-listener'
import { startFake } from 'drainable/testing/envoy'
import { ctx, names, setOf } from './web-set.js'

const ref = { pool: 'main', member: names[0]! }

/** The set with its first member drained, as its owner would write it. */
function drainedSet(): ReturnType<typeof setOf> {
  const set = setOf(names)
  Object.assign(set.endpoints[0]!.lb_endpoints[0]!, { health_status: 'DRAINING' })
  return set
}

describe('a cluster that CDS takes away, asked for by its own name', () => {
  test.each(['callback', 'observed'])(
    'still tells of the work of its member (%s)',
    async (kind) => {
      await using fake = await startFake({ pools: { main: names }, services: { main: 'web' } })
      await fake.setBehind(ref, 'drain')
      const set = drainedSet()
      const endpoints =
        kind === 'observed'
          ? observedEndpoints()
          : callbackEndpoints({
              load: () => Promise.resolve(set),
              publish: () => Promise.resolve(),
            })
      await using lb = envoy({ endpoints, admin: [fake.url] })
      const end = await fake.occupy(ref)
      const { readings: before } = await lb.observe([ref], ctx())
      expect(before[0]?.scopes[0]).toMatchObject({ state: 'read', active: 1 })
      fake.removeCluster('main')
      await lb.observe([ref], ctx())
      const { readings: after } = await lb.observe([ref], ctx())
      expect(after[0]?.scopes.length).toBeGreaterThan(0)
      await end()
    },
  )
})

test('of two sets that are given at once the later one stands', async () => {
  await using fake = await startFake({ pools: { web: [] } })
  const other = (n: number): object => ({ ...setOf(names), cluster_name: `other-${n}` })
  const sink = restEndpoints({ port: 0, initial: [setOf(names), other(1), other(2)] })
  await using lb = envoy({ endpoints: sink, admin: [fake.url] })
  await lb.observe('all', ctx()).catch(() => undefined)
  const one = sink.set([setOf(names), other(1), other(2)])
  const two = sink.set([setOf(names.slice(1))])
  await Promise.all([one, two])
  const { readings } = await lb.observe('all', ctx())
  const web = readings.filter((reading) => reading.ref.pool === 'web')
  expect(web.map((reading) => reading.ref.member)).toEqual(names.slice(1))
})

test.each([undefined, null])(
  'an admin function that gives %s is one that failed',
  async (value) => {
    const admin = (): Promise<string[]> => Promise.resolve(value as never)
    const load = (): Promise<object> => Promise.resolve(setOf(names))
    const publish = (): Promise<void> => Promise.resolve()
    await using lb = envoy({ endpoints: callbackEndpoints({ load, publish }), admin })
    await using listener = envoyListener({ admin })
    const words = /the admin function failed: expected a list of addresses/
    await expect(lb.observe([ref], ctx())).rejects.toThrow(words)
    await expect(
      listener.observe([{ pool: 'envoy', member: '127.0.0.1:9901' }], ctx()),
    ).rejects.toThrow(words)
  },
)
