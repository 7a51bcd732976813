/** Envoys whose cluster `dyn` comes by CDS, each from a file of its own, and its endpoints from one file for all. */
import { rename, writeFile } from 'node:fs/promises'
import { envoy, fileEndpoints } from 'drainable/envoy'
import type { MemberRef } from 'drainable/provider'
import { until } from '../wait.js'
import { startBackend, type Backend } from './backend.js'
import { ask } from './client.js'
import { startEnvoy, workDir, type RunningEnvoy } from './proxy.js'
import { setOf, writeEds } from './sets.js'

type Fields = Readonly<Record<string, unknown>>

export interface DynamicProxy extends RunningEnvoy {
  /** Hands it these clusters; each takes the set `dyn`, and has more fields as given. */
  clusters(list: readonly Fields[]): Promise<void>
  /** Takes cluster `dyn` from it, and waits until it lists it no more. */
  remove(): Promise<void>
}

export interface ClusterStage extends AsyncDisposable {
  readonly a: Backend
  readonly b: Backend
  readonly proxies: readonly DynamicProxy[]
  readonly ref: MemberRef
  /** Writes the set `dyn`. */
  endpoints(ports: readonly number[], drained?: number): Promise<void>
  /** A provider that owns the set and looks at these proxies, by default at all. */
  provide(of?: readonly RunningEnvoy[]): ReturnType<typeof envoy>
  /** Sends requests through a proxy until server `a` holds one; the others of them are answered. */
  hold(proxy: RunningEnvoy): Promise<void>
}

/** @param proxies - for each other fields of its bootstrap and of its cluster, and whether it begins without the cluster */
export async function clusterStage(
  path: string,
  proxies: readonly {
    readonly bootstrap?: Fields
    readonly cluster?: Fields
    readonly without?: boolean
  }[],
): Promise<ClusterStage> {
  await using all = new AsyncDisposableStack()
  const dir = all.use(await workDir())
  const a = all.use(await startBackend())
  const b = all.use(await startBackend())
  const eds = `${dir.path}/dyn.json`
  let version = 0
  const endpoints = (ports: readonly number[], drained?: number): Promise<void> => {
    const status = (port: number) => (port === drained ? { health_status: 'DRAINING' } : {})
    return writeEds(eds, [setOf(ports, 'dyn', status)], String(++version))
  }
  await endpoints([a.port, b.port])
  const started: DynamicProxy[] = []
  for (const [i, { bootstrap, cluster, without }] of proxies.entries()) {
    const cds = `${dir.path}/cds-${i}.json`
    const clusters = async (list: readonly Fields[]): Promise<void> => {
      const resources = list.map((more) => ({
        '@type': 'type.googleapis.com/envoy.config.cluster.v3.Cluster',
        type: 'EDS',
        connect_timeout: '2s',
        eds_cluster_config: {
          service_name: 'dyn',
          eds_config: { resource_api_version: 'V3', path_config_source: { path: eds } },
        },
        ...more,
      }))
      await writeFile(`${cds}.tmp`, JSON.stringify({ version_info: String(++version), resources }))
      await rename(`${cds}.tmp`, cds)
    }
    await clusters(without === true ? [] : [{ name: 'dyn', ...cluster }])
    const other = `${dir.path}/web-${i}.json`
    await writeEds(other, [setOf([1])])
    const proxy = await startEnvoy({
      path,
      id: `envoy-${i}`,
      eds: { file: other },
      route: { cluster: 'dyn' },
      bootstrap: {
        ...bootstrap,
        dynamic_resources: {
          cds_config: { resource_api_version: 'V3', path_config_source: { path: cds } },
        },
      },
    })
    all.use(proxy)
    const isListed = async (): Promise<boolean> => (await proxy.get('/clusters')).includes('dyn::')
    const remove = async (): Promise<void> => {
      await clusters([])
      await until(async () => !(await isListed()), 'its end')
    }
    if (without !== true) await until(isListed, 'a cluster')
    started.push(Object.assign(proxy, { clusters, remove }))
  }
  const held = all.move()
  return {
    a,
    b,
    proxies: started,
    ref: { pool: 'dyn', member: a.member },
    endpoints,
    provide: (of = started) =>
      envoy({
        endpoints: fileEndpoints({ cluster: 'dyn', path: eds }),
        admin: of.map(({ admin }) => admin),
      }),
    hold: async ({ http }) => {
      await until(async () => {
        void ask(http, '/hold').catch(() => undefined)
        await until(() => a.held + b.held > 0, 'a request')
        b.release()
        return a.held > 0
      }, 'a held request')
    },
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}
