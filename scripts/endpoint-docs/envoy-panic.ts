/**
 * Asks a real Envoy where traffic goes for a mix of host healths, for the table in docs/endpoint-conditions.md.
 *
 *     npm run engines -- envoy-1.40
 *     node scripts/endpoint-docs/envoy-panic.ts    # writes scripts/endpoint-docs/envoy-panic.json
 *
 * One cluster per row, its hosts given with their health as an EDS server would; 30 requests each, round robin.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, get, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { format } from 'prettier'
import { readEngines } from '../engines/manifest.ts'

type Health = 'HEALTHY' | 'DRAINING' | 'UNHEALTHY' | 'DEGRADED'

/** What is set: the hosts, and when the cluster may panic. */
interface Mix {
  readonly hosts: readonly Health[]
  readonly panic: 'default 50' | '0' | 'fail_traffic_on_panic'
}

/** What was seen. */
export interface PanicRow extends Mix {
  /** How many of the requests each host got, in the order of the hosts. */
  readonly requests: readonly number[]
  /** How many were answered by Envoy itself, with 503. */
  readonly refused: number
  readonly panics: number
  readonly excluded: number
}

export interface PanicRecord {
  readonly version: string
  readonly requestsPerRow: number
  readonly rows: readonly PanicRow[]
}

const REQUESTS = 30
const MIXES: readonly Mix[] = [
  { hosts: ['HEALTHY', 'DRAINING'], panic: 'default 50' },
  { hosts: ['HEALTHY', 'DRAINING', 'DRAINING', 'DRAINING', 'DRAINING'], panic: 'default 50' },
  { hosts: ['HEALTHY', 'HEALTHY', 'DRAINING', 'DRAINING', 'DRAINING'], panic: 'default 50' },
  { hosts: ['HEALTHY', 'UNHEALTHY', 'UNHEALTHY'], panic: 'default 50' },
  { hosts: ['HEALTHY', 'DRAINING', 'UNHEALTHY', 'UNHEALTHY'], panic: 'default 50' },
  { hosts: ['DRAINING', 'DRAINING'], panic: 'default 50' },
  { hosts: ['DRAINING', 'UNHEALTHY'], panic: 'default 50' },
  { hosts: ['DRAINING', 'DRAINING'], panic: '0' },
  { hosts: ['DRAINING', 'DRAINING'], panic: 'fail_traffic_on_panic' },
  { hosts: ['HEALTHY', 'DEGRADED', 'DEGRADED'], panic: 'default 50' },
  { hosts: ['DEGRADED', 'DEGRADED'], panic: '0' },
]

const PANIC_CONFIG = {
  'default 50': {},
  '0': { healthy_panic_threshold: { value: 0 } },
  fail_traffic_on_panic: { zone_aware_lb_config: { fail_traffic_on_panic: true } },
}

function listen(server: Server): Promise<number> {
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
  })
}

function bootstrap(backends: readonly number[], port: number): object {
  const at = (port_value: number) => ({ socket_address: { address: '127.0.0.1', port_value } })
  const manager = {
    '@type':
      'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
    stat_prefix: 'in',
    route_config: {
      virtual_hosts: [
        {
          name: 'all',
          domains: ['*'],
          routes: MIXES.map((_, i) => ({
            match: { path: `/${i}` },
            route: { cluster: `row${i}` },
          })),
        },
      ],
    },
    http_filters: [
      {
        name: 'router',
        typed_config: {
          '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router',
        },
      },
    ],
  }
  return {
    admin: { address: at(0) },
    static_resources: {
      listeners: [
        {
          address: at(port),
          filter_chains: [{ filters: [{ name: 'http', typed_config: manager }] }],
        },
      ],
      clusters: MIXES.map(({ hosts, panic }, i) => ({
        name: `row${i}`,
        connect_timeout: '1s',
        common_lb_config: PANIC_CONFIG[panic],
        load_assignment: {
          cluster_name: `row${i}`,
          endpoints: [
            {
              lb_endpoints: hosts.map((health_status, n) => ({
                health_status,
                endpoint: { address: at(backends[n] ?? 0) },
              })),
            },
          ],
        },
      })),
    },
  }
}

function fetchText(url: string): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const call = get(url, (reply) => {
      let text = ''
      reply.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      reply.on('end', () => resolve({ status: reply.statusCode ?? 0, text }))
    })
    call.on('error', reject)
  })
}

async function retry<T>(work: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + 20_000
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (performance.now() > deadline) throw error
      await pause(50)
    }
  }
}

async function measure(program: string): Promise<PanicRow[]> {
  const directory = mkdtempSync(join(tmpdir(), 'drainable-panic-'))
  const servers = [0, 1, 2, 3, 4].map((n) => createServer((_, reply) => reply.end(`host ${n}`)))
  const backends = await Promise.all(servers.map(listen))
  const spare = createServer()
  const port = await listen(spare)
  await new Promise((resolve) => spare.close(resolve))
  const config = join(directory, 'envoy.json')
  writeFileSync(config, JSON.stringify(bootstrap(backends, port)))
  const adminFile = join(directory, 'admin')
  const args = [
    '-c',
    config,
    '--admin-address-path',
    adminFile,
    '--use-dynamic-base-id',
    '-l',
    'error',
  ]
  const child = spawn(program, [...args, '--concurrency', '1'], { stdio: 'inherit' })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  try {
    const admin = await retry(async () => {
      const address = readFileSync(adminFile, 'utf8').trim()
      const { text } = await fetchText(`http://${address}/ready`)
      if (text.trim() !== 'LIVE') throw new Error(`Envoy says ${text}`)
      return address
    })
    const rows: PanicRow[] = []
    for (const [i, mix] of MIXES.entries()) {
      const requests = mix.hosts.map(() => 0)
      let refused = 0
      for (let n = 0; n < REQUESTS; n++) {
        const { status, text } = await fetchText(`http://127.0.0.1:${port}/${i}`)
        const host = Number(text.replace('host ', ''))
        if (status === 200) requests[host] = (requests[host] ?? 0) + 1
        else refused++
      }
      const { text } = await fetchText(`http://${admin}/stats?filter=^cluster.row${i}.`)
      const stat = (name: string): number =>
        Number(new RegExp(`${name}: (\\d+)`).exec(text)?.[1] ?? 0)
      rows.push({
        ...mix,
        requests,
        refused,
        panics: stat('lb_healthy_panic'),
        excluded: stat('membership_excluded'),
      })
    }
    return rows
  } finally {
    child.kill('SIGTERM')
    await ended
    for (const server of servers) server.close()
    rmSync(directory, { recursive: true, force: true })
  }
}

const envoy = readEngines('envoy').findLast(({ series }) => series === '1.40')
if (envoy === undefined) {
  console.error('there is no Envoy 1.40: install it with npm run engines -- envoy-1.40')
  process.exit(1)
}
const record: PanicRecord = {
  version: envoy.version,
  requestsPerRow: REQUESTS,
  rows: await measure(envoy.path),
}
const path = new URL('envoy-panic.json', import.meta.url)
writeFileSync(path, await format(JSON.stringify(record), { parser: 'json', printWidth: 100 }))
for (const { hosts, panic, requests, refused } of record.rows) {
  console.log(`${hosts.join(' ')} | ${panic} | ${requests.join(' ')} | ${refused} refused`)
}
