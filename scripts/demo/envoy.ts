import { spawn, spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { readEngines } from '../engines/manifest.ts'
import type { Engine } from '../engines/manifest.ts'
import { freePort } from '../ports.ts'
import { stop, type WebServer } from './balancer.ts'

/** An Envoy in front of the servers, which reads its endpoints from a file. */
export interface Proxy extends AsyncDisposable {
  readonly version: string
  readonly admin: string
  /** The endpoints of the cluster `web`. */
  readonly file: string
  /** Where clients come in. */
  readonly port: number
}

/** The newest Envoy that is there; else one is fetched into the git-ignored folder of engines. */
export function findEnvoy(say: (text: string) => void): Engine | undefined {
  const found = readEngines('envoy').at(-1)
  if (found) return found
  say('No Envoy found: fetching one into .engines/ (once; no root needed)')
  const script = fileURLToPath(new URL('../engines/main.ts', import.meta.url))
  spawnSync(process.execPath, [script, 'envoy-1.40'], { stdio: ['ignore', 'inherit', 'inherit'] })
  return readEngines('envoy').at(-1)
}

/** A real Envoy with one listener and one cluster, whose servers it checks itself. */
export async function startEnvoy(engine: Engine, servers: readonly WebServer[]): Promise<Proxy> {
  const folder = await mkdtemp(join(tmpdir(), 'demo-'))
  const [port, admin] = [await freePort(), await freePort()]
  const file = join(folder, 'web.json')
  await writeFile(file, JSON.stringify(endpoints(servers)))
  const config = join(folder, 'envoy.json')
  await writeFile(config, JSON.stringify(bootstrap(port, admin, folder, file)))
  const args = ['-c', config, '--concurrency', '1', '-l', 'error', '--disable-hot-restart']
  const child = spawn(engine.path, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  let log = ''
  child.stderr.on('data', (chunk: Buffer) => (log = (log + chunk.toString()).slice(-4_000)))
  const atExit = (): void => {
    child.kill('SIGTERM')
    rmSync(folder, { recursive: true, force: true })
  }
  process.once('exit', atExit)
  const close = async (): Promise<void> => {
    process.off('exit', atExit)
    await stop(child)
    await rm(folder, { recursive: true, force: true })
  }
  const limit = Date.now() + 15_000
  for (;;) {
    const answer = await fetch(`http://127.0.0.1:${admin}/ready`).catch(() => undefined)
    if (answer?.ok === true) break
    if (child.exitCode !== null || Date.now() > limit) {
      await close()
      throw new Error(`Envoy ${engine.version} does not start: ${log.trim()}`)
    }
    await pause(20)
  }
  return {
    version: engine.version,
    admin: `http://127.0.0.1:${admin}`,
    file,
    port,
    [Symbol.asyncDispose]: close,
  }
}

function endpoints(servers: readonly WebServer[]): object {
  const lb_endpoints = servers.map(({ port }) => ({
    endpoint: { address: { socket_address: { address: '127.0.0.1', port_value: port } } },
  }))
  const set = {
    '@type': 'type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment',
    cluster_name: 'web',
    endpoints: [{ lb_endpoints }],
  }
  return { version_info: '1', resources: [set] }
}

function bootstrap(port: number, admin: number, folder: string, file: string): object {
  const on = (port_value: number): object => ({
    socket_address: { address: '127.0.0.1', port_value },
  })
  const v3 = 'type.googleapis.com/envoy.extensions.filters'
  const manager = {
    '@type': `${v3}.network.http_connection_manager.v3.HttpConnectionManager`,
    stat_prefix: 'web',
    http_filters: [
      {
        name: 'envoy.filters.http.router',
        typed_config: { '@type': `${v3}.http.router.v3.Router` },
      },
    ],
    route_config: {
      virtual_hosts: [
        {
          name: 'web',
          domains: ['*'],
          routes: [{ match: { prefix: '/' }, route: { cluster: 'web', timeout: '0s' } }],
        },
      ],
    },
  }
  const check = {
    timeout: '1s',
    interval: '0.2s',
    healthy_threshold: 1,
    unhealthy_threshold: 2,
    http_health_check: { path: '/' },
  }
  return {
    node: { id: 'demo', cluster: 'demo' },
    admin: { address: on(admin) },
    static_resources: {
      listeners: [
        {
          address: on(port),
          filter_chains: [
            {
              filters: [
                { name: 'envoy.filters.network.http_connection_manager', typed_config: manager },
              ],
            },
          ],
        },
      ],
      clusters: [
        {
          name: 'web',
          type: 'EDS',
          connect_timeout: '1s',
          health_checks: [check],
          eds_cluster_config: {
            eds_config: {
              resource_api_version: 'V3',
              path_config_source: { path: file, watched_directory: { path: folder } },
            },
          },
        },
      ],
    },
  }
}
