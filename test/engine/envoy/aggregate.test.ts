import { describe, expect, test } from 'vitest'
import { drain, isDrainableError } from 'drainable'
import { envoy, fileEndpoints } from 'drainable/envoy'
import type { MemberRef } from 'drainable/provider'
import { engines } from '../../support/engines.js'
import { startEnvoy, workDir, type RunningEnvoy } from '../../support/envoy/proxy.js'
import { startBackend, type Backend } from '../../support/envoy/backend.js'
import { ask } from '../../support/envoy/client.js'
import { setOf, writeEds } from '../../support/envoy/sets.js'
import { until } from '../../support/wait.js'

const AGGREGATE = 'type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig'

interface AggregateStage extends AsyncDisposable {
  readonly a: Backend
  readonly b: Backend
  readonly proxy: RunningEnvoy
  readonly lb: ReturnType<typeof envoy>
  readonly ref: MemberRef
}

/** Cluster `all` hands its requests to `first`, which has one server, and then to `second`. */
async function stageOf(
  path: string,
  options: {
    readonly route?: Readonly<Record<string, unknown>>
    /** How many endpoints of `second` are said to be UNHEALTHY beside its server. */
    readonly ill?: number
    readonly onPanic?: 'allow'
  } = {},
): Promise<AggregateStage> {
  await using all = new AsyncDisposableStack()
  const dir = all.use(await workDir())
  const a = all.use(await startBackend())
  const b = all.use(await startBackend())
  const files = { web: [1], first: [a.port], second: [b.port] }
  const ill = Array.from({ length: options.ill ?? 0 }, (_, i) => i + 1)
  for (const [name, ports] of Object.entries(files)) {
    const set = setOf(name === 'second' ? [...ports, ...ill] : ports, name, (port) =>
      ill.includes(port) ? { health_status: 'UNHEALTHY' } : {},
    )
    await writeEds(`${dir.path}/${name}.json`, [set])
  }
  const eds = (name: string) => ({
    name,
    type: 'EDS',
    connect_timeout: '1s',
    eds_cluster_config: {
      eds_config: {
        resource_api_version: 'V3',
        path_config_source: { path: `${dir.path}/${name}.json` },
      },
    },
  })
  const proxy = all.use(
    await startEnvoy({
      path,
      eds: { file: `${dir.path}/web.json` },
      route: { cluster: 'all', ...options.route },
      clusters: [
        eds('first'),
        eds('second'),
        {
          name: 'all',
          connect_timeout: '1s',
          lb_policy: 'CLUSTER_PROVIDED',
          cluster_type: {
            name: 'envoy.clusters.aggregate',
            typed_config: { '@type': AGGREGATE, clusters: ['first', 'second'] },
          },
        },
      ],
    }),
  )
  const lb = all.use(
    envoy({
      endpoints: fileEndpoints({ cluster: 'first', path: `${dir.path}/first.json` }),
      admin: [proxy.admin],
      ...(options.onPanic === undefined ? {} : { onPanic: options.onPanic }),
    }),
  )
  const held = all.move()
  const ref = { pool: 'first', member: a.member }
  return { a, b, proxy, lb, ref, [Symbol.asyncDispose]: () => held.disposeAsync() }
}

const POLICY = { timeout: '15s', keepReady: 0 } as const

describe.each(engines('envoy'))('an aggregate cluster of Envoy $version', ({ path }) => {
  test('the last endpoint of its first cluster is drained to the second', async () => {
    await using stage = await stageOf(path)
    const { a, b, proxy, lb, ref } = stage
    expect((await ask(proxy.http)).port).toBe(a.port)
    await expect(drain(lb, ref, { timeout: '15s' })).rejects.toThrow(/its work then goes elsewhere/)
    const report = await drain(lb, ref, POLICY)
    expect(report.members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true })
    for (let i = 0; i < 10; i += 1) expect((await ask(proxy.http)).port).toBe(b.port)
  })

  test('with a route to the first cluster itself it is refused', async () => {
    const clusters = [
      { name: 'all', weight: 1 },
      { name: 'first', weight: 1 },
    ]
    await using stage = await stageOf(path, {
      route: { cluster: undefined, weighted_clusters: { clusters } },
    })
    const { a, proxy, lb, ref } = stage
    const error: unknown = await drain(lb, ref, POLICY).catch((thrown: unknown) => thrown)
    expect(isDrainableError(error, 'REJECTED') && error.message).toContain('of cluster first')
    expect((await ask(proxy.http)).port).toBe(a.port)
  })

  test('with onPanic allow it is drained where a later cluster is healthy', async () => {
    await using stage = await stageOf(path, { onPanic: 'allow' })
    const { a, b, proxy, lb, ref } = stage
    expect((await ask(proxy.http)).port).toBe(a.port)
    const report = await drain(lb, ref, POLICY)
    expect(report.members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true })
    for (let i = 0; i < 10; i += 1) expect((await ask(proxy.http)).port).toBe(b.port)
  })

  test('where all of it would panic it is refused, and never in force', async () => {
    await using stage = await stageOf(path, { ill: 3, onPanic: 'allow' })
    const { a, proxy, lb, ref } = stage
    const error: unknown = await drain(lb, ref, { ...POLICY, timeout: '4s' }).catch(
      (thrown: unknown) => thrown,
    )
    expect(isDrainableError(error, 'DRAIN_TIMEOUT') && error.message).toContain('panic mode')
    await until(async () => (await ask(proxy.http)).port === a.port, 'a drained server')
  })
})
