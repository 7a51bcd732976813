/** Real Envoys, servers behind them and clients in front of them, for engine tests. All on loopback. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { createServer, request, Agent, type IncomingMessage, type ServerResponse } from 'node:http'
import { connect, createServer as createTcp, type AddressInfo, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const V3 = 'type.googleapis.com/envoy.extensions.filters'

/** Where the endpoints of cluster `web` come from. */
export type EdsSource =
  | { readonly file: string }
  | { readonly rest: number }
  | {
      readonly grpc: number
      readonly delta?: boolean
      readonly ads?: boolean
      readonly tls?: TlsFiles
    }

export interface TlsFiles {
  readonly ca: string
  readonly cert: string
  readonly key: string
}

export interface EnvoyOptions {
  readonly path: string
  readonly eds: EdsSource
  readonly id?: string
  /** Port of a load report service. */
  readonly loads?: number
  /** Merged into the cluster. */
  readonly cluster?: Readonly<Record<string, unknown>>
  /** Filters before the router. */
  readonly httpFilters?: readonly unknown[]
  /** EDS service name where it is not the cluster's name. */
  readonly service?: string
  readonly adminSocket?: string
  /** Layers of the runtime. */
  readonly runtime?: Readonly<Record<string, unknown>>
  /** Route of the listener. */
  readonly route?: Readonly<Record<string, unknown>>
  readonly http2?: boolean
  /** Seconds that a parent goes on after a hot restart. @default no hot restart */
  readonly parentShutdown?: number
  /** `--drain-time-s`. @default 600, after a hot restart 1 */
  readonly drainTime?: number
  /** Prefixes of the admin paths that are allowed. @default every path */
  readonly allowPaths?: readonly string[]
  /** Merged into the bootstrap. */
  readonly bootstrap?: Readonly<Record<string, unknown>>
}

export interface RunningEnvoy extends AsyncDisposable {
  readonly admin: string
  readonly http: number
  readonly tcp: number
  readonly pid: number
  pause(): void
  resume(): void
  stop(): Promise<void>
  /** Stops it and starts it again on the same ports. */
  restart(): Promise<void>
  /** Starts the next process beside it, which takes over; needs `parentShutdown`. */
  hotRestart(): Promise<void>
  get(path: string): Promise<string>
}

/** A temporary folder. */
export async function workDir(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(tmpdir(), 'drainable-envoy-'))
  return {
    path,
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }),
  }
}

export async function startEnvoy(options: EnvoyOptions): Promise<RunningEnvoy> {
  const dir = await workDir()
  const ports = { admin: 0, http: 0, tcp: 0 }
  const base = 1_000 + Math.floor(Math.random() * 1_000_000)
  let epoch = 0
  let child = await launch(options, dir.path, ports, { base, epoch })
  let parents: ChildProcess[] = []
  const admin = options.adminSocket ?? `http://127.0.0.1:${ports.admin}`
  const stop = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return
    for (const one of [...parents, child]) {
      if (one.exitCode !== null || one.signalCode !== null) continue
      one.kill('SIGCONT')
      one.kill('SIGKILL')
      await once(one, 'exit')
    }
    parents = []
  }
  return {
    admin,
    get http() {
      return ports.http
    },
    get tcp() {
      return ports.tcp
    },
    get pid() {
      return child.pid ?? 0
    },
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    stop,
    restart: async () => {
      await stop()
      epoch = 0
      child = await launch(options, dir.path, ports, { base, epoch })
    },
    hotRestart: async () => {
      parents.push(child)
      child = await launch(options, dir.path, ports, { base, epoch: ++epoch })
    },
    get: (path) => adminGet(admin, path),
    [Symbol.asyncDispose]: async () => {
      await stop()
      await dir[Symbol.asyncDispose]()
    },
  }
}

async function launch(
  options: EnvoyOptions,
  dir: string,
  ports: { admin: number; http: number; tcp: number },
  { base, epoch }: { readonly base: number; readonly epoch: number },
): Promise<ChildProcess> {
  const config = join(dir, 'envoy.json')
  const address = join(dir, 'admin-address')
  await rm(address, { force: true })
  await writeFile(config, JSON.stringify(bootstrap(options, ports)))
  const log = join(dir, 'envoy.log')
  const child = spawn(
    options.path,
    [
      '-c',
      config,
      ...(options.parentShutdown === undefined
        ? ['--disable-hot-restart']
        : [
            ['--base-id', base],
            ['--restart-epoch', epoch],
            ['--parent-shutdown-time-s', options.parentShutdown],
            ['--drain-time-s', 1],
          ]
            .flat()
            .map(String)),
      ...(options.drainTime === undefined ? [] : ['--drain-time-s', String(options.drainTime)]),
      '--concurrency',
      '2',
      '-l',
      'warning',
      '--log-path',
      log,
    ].concat(options.adminSocket === undefined ? ['--admin-address-path', address] : []),
    { stdio: 'ignore' },
  )
  try {
    if (options.adminSocket === undefined) {
      const text = await until(async () => {
        if (child.exitCode !== null) throw new Error(await readFile(log, 'utf8'))
        return await readFile(address, 'utf8').catch(() => '')
      }, 'an admin address')
      ports.admin = Number(text.split(':').at(-1))
    }
    const admin = options.adminSocket ?? `http://127.0.0.1:${ports.admin}`
    const listeners = await until(async () => {
      if (child.exitCode !== null) throw new Error(await readFile(log, 'utf8'))
      const info = await adminGet(admin, '/server_info').catch(() => '{}')
      const { state, command_line_options: used } = JSON.parse(info) as {
        state?: string
        command_line_options?: { restart_epoch: number }
      }
      const isOurs = state === 'LIVE' && used?.restart_epoch === epoch
      return isOurs ? await adminGet(admin, '/listeners?format=json') : ''
    }, 'a live Envoy')
    const { listener_statuses: statuses } = JSON.parse(listeners) as {
      listener_statuses: {
        name: string
        local_address: { socket_address: { port_value: number } }
      }[]
    }
    for (const { name, local_address: local } of statuses) {
      if (name === 'http' || name === 'tcp') ports[name] = local.socket_address.port_value
    }
    return child
  } catch (error) {
    child.kill('SIGKILL')
    throw error
  }
}

function bootstrap(o: EnvoyOptions, ports: { admin: number; http: number; tcp: number }): unknown {
  const local = (port: number): unknown => ({
    socket_address: { address: '127.0.0.1', port_value: port },
  })
  const xds = 'grpc' in o.eds ? o.eds.grpc : o.loads
  const api = (delta: boolean): unknown => ({
    api_type: delta ? 'DELTA_GRPC' : 'GRPC',
    transport_api_version: 'V3',
    set_node_on_first_message_only: true,
    grpc_services: [{ envoy_grpc: { cluster_name: 'xds' } }],
  })
  return {
    ...o.bootstrap,
    node: { id: o.id ?? 'envoy-1', cluster: 'test' },
    admin: {
      ...(o.allowPaths === undefined
        ? {}
        : { allow_paths: o.allowPaths.map((prefix) => ({ prefix })) }),
      address:
        o.adminSocket === undefined
          ? local(ports.admin)
          : { pipe: { path: o.adminSocket.replace('unix:', '') } },
    },
    ...(o.runtime === undefined
      ? {}
      : { layered_runtime: { layers: [{ name: 'static', static_layer: o.runtime }] } }),
    ...('grpc' in o.eds && o.eds.ads === true
      ? { dynamic_resources: { ads_config: api(o.eds.delta === true) } }
      : {}),
    ...(o.loads === undefined
      ? {}
      : {
          cluster_manager: {
            load_stats_config: {
              api_type: 'GRPC',
              transport_api_version: 'V3',
              grpc_services: [{ envoy_grpc: { cluster_name: 'xds' } }],
            },
          },
        }),
    static_resources: {
      listeners: [
        {
          name: 'http',
          address: local(ports.http),
          filter_chains: [
            {
              filters: [
                {
                  name: 'http',
                  typed_config: {
                    '@type': `${V3}.network.http_connection_manager.v3.HttpConnectionManager`,
                    stat_prefix: 'in',
                    upgrade_configs: [{ upgrade_type: 'websocket' }],
                    route_config: {
                      virtual_hosts: [
                        {
                          name: 'all',
                          domains: ['*'],
                          routes: [
                            {
                              match: { prefix: '/' },
                              route: { cluster: 'web', timeout: '0s', ...o.route },
                            },
                          ],
                        },
                      ],
                    },
                    http_filters: [
                      ...(o.httpFilters ?? []),
                      {
                        name: 'router',
                        typed_config: { '@type': `${V3}.http.router.v3.Router` },
                      },
                    ],
                  },
                },
              ],
            },
          ],
        },
        {
          name: 'tcp',
          address: local(ports.tcp),
          filter_chains: [
            {
              filters: [
                {
                  name: 'tcp',
                  typed_config: {
                    '@type': `${V3}.network.tcp_proxy.v3.TcpProxy`,
                    stat_prefix: 'tcp',
                    cluster: 'web',
                  },
                },
              ],
            },
          ],
        },
      ],
      clusters: [
        {
          name: 'web',
          type: 'EDS',
          connect_timeout: '2s',
          eds_cluster_config: {
            ...(o.service === undefined ? {} : { service_name: o.service }),
            eds_config: {
              resource_api_version: 'V3',
              initial_fetch_timeout: '2s',
              ...edsConfig(o.eds, api),
            },
          },
          ...(o.http2 === true
            ? {
                typed_extension_protocol_options: {
                  'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
                    '@type':
                      'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
                    explicit_http_config: { http2_protocol_options: {} },
                  },
                },
              }
            : {}),
          ...o.cluster,
        },
        ...(xds === undefined
          ? []
          : [xdsCluster('xds', xds, true, 'grpc' in o.eds ? o.eds.tls : undefined)]),
        ...('rest' in o.eds ? [xdsCluster('xdsrest', o.eds.rest, false, undefined)] : []),
      ],
    },
  }
}

function edsConfig(eds: EdsSource, api: (delta: boolean) => unknown): Record<string, unknown> {
  if ('file' in eds) return { path_config_source: { path: eds.file } }
  if ('rest' in eds) {
    return {
      api_config_source: {
        api_type: 'REST',
        transport_api_version: 'V3',
        cluster_names: ['xdsrest'],
        refresh_delay: '0.1s',
        request_timeout: '2s',
      },
    }
  }
  return eds.ads === true ? { ads: {} } : { api_config_source: api(eds.delta === true) }
}

function xdsCluster(
  name: string,
  port: number,
  http2: boolean,
  tls: TlsFiles | undefined,
): unknown {
  return {
    name,
    type: 'STATIC',
    connect_timeout: '1s',
    ...(http2
      ? {
          typed_extension_protocol_options: {
            'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
              '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
              explicit_http_config: { http2_protocol_options: {} },
            },
          },
        }
      : {}),
    ...(tls === undefined
      ? {}
      : {
          transport_socket: {
            name: 'tls',
            typed_config: {
              '@type':
                'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext',
              common_tls_context: {
                tls_certificates: [
                  { certificate_chain: { filename: tls.cert }, private_key: { filename: tls.key } },
                ],
                validation_context: { trusted_ca: { filename: tls.ca } },
              },
            },
          },
        }),
    load_assignment: {
      cluster_name: name,
      endpoints: [
        {
          lb_endpoints: [
            {
              endpoint: {
                address: { socket_address: { address: '127.0.0.1', port_value: port } },
              },
            },
          ],
        },
      ],
    },
  }
}

/** One endpoint set for servers on loopback. */
export function setOf(
  ports: readonly number[],
  cluster = 'web',
  extra: (port: number) => Record<string, unknown> = () => ({}),
): Record<string, unknown> {
  return {
    cluster_name: cluster,
    endpoints: [
      {
        lb_endpoints: ports.map((port) => ({
          endpoint: { address: { socket_address: { address: '127.0.0.1', port_value: port } } },
          ...extra(port),
        })),
      },
    ],
  }
}

/** Writes an EDS file as a deployment would: beside it, then moved there. */
export async function writeEds(
  path: string,
  sets: readonly unknown[],
  version = '1',
): Promise<void> {
  const resources = sets.map((set) => ({
    '@type': 'type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment',
    ...(set as object),
  }))
  await writeFile(`${path}.tmp`, JSON.stringify({ version_info: version, resources }))
  await rename(`${path}.tmp`, path)
}

/** A server behind Envoy: `/hold` is answered when it is let go, everything else at once. */
export interface Backend extends AsyncDisposable {
  readonly port: number
  readonly member: string
  /** When each request came in. */
  readonly requests: readonly number[]
  readonly held: number
  /** Lets every held request go. */
  release(): void
  /** Lets the one that came first go. */
  releaseOne(): void
}

export async function startBackend(): Promise<Backend> {
  const requests: number[] = []
  const held = new Set<ServerResponse>()
  const sockets = new Set<Socket>()
  const server = createServer((req: IncomingMessage, res) => {
    requests.push(performance.now())
    res.setHeader('x-port', String((server.address() as AddressInfo).port))
    if (req.url?.startsWith('/hold') === true) {
      held.add(res)
      res.on('close', () => held.delete(res))
      if (req.url.startsWith('/hold-stream')) res.write('begun')
    } else res.end('ok')
  })
  server.on('upgrade', (req, socket: Socket) => {
    requests.push(performance.now())
    socket.write(
      'HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\r\n',
    )
    socket.on('data', (data) => socket.write(data))
    socket.on('end', () => socket.end())
    socket.on('error', () => undefined)
  })
  server.keepAliveTimeout = 60_000
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    port,
    member: `127.0.0.1:${port}`,
    requests,
    get held() {
      return held.size
    },
    release: () => {
      for (const res of held) res.end('done')
    },
    releaseOne: () => {
      const [first] = held
      if (first === undefined) return
      held.delete(first)
      first.end('done')
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      if (!server.listening) return
      server.close()
      await once(server, 'close')
    },
  }
}

/** An echo server for raw TCP. */
export async function startEcho(): Promise<
  AsyncDisposable & { readonly port: number; readonly member: string }
> {
  const sockets = new Set<Socket>()
  const server = createTcp((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('data', (data) => socket.write(data))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    port,
    member: `127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

export interface Answer {
  readonly status: number
  readonly port: number
  readonly body: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
}

/** One request to a listener. */
export function ask(
  port: number,
  path = '/',
  options: { agent?: Agent; headers?: Record<string, string> } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const req = request(
      {
        host: '127.0.0.1',
        port,
        path,
        agent: options.agent ?? false,
        headers: options.headers ?? {},
      },
      (res) => {
        let body = ''
        res.setEncoding('utf8')
        res.on('data', (chunk: string) => (body += chunk))
        res.on('error', reject)
        res.on('end', () =>
          resolve({
            status: res.statusCode ?? 0,
            port: Number(res.headers['x-port']),
            body,
            headers: res.headers,
          }),
        )
      },
    )
    req.on('error', reject)
    req.end()
  })
}

/** Steady traffic from keep-alive clients; every answer that is not 200 is an error. */
export function startTraffic(
  port: number,
  { clients = 4, pause = 2 }: { clients?: number; pause?: number } = {},
): AsyncDisposable & { readonly sent: number; readonly errors: readonly string[] } {
  const agent = new Agent({ keepAlive: true, maxSockets: clients })
  const errors: string[] = []
  let sent = 0
  let stopped = false
  const isStopped = (): boolean => stopped
  const runs = Array.from({ length: clients }, async () => {
    while (!isStopped()) {
      try {
        const { status } = await ask(port, '/', { agent })
        if (status !== 200) errors.push(String(status))
      } catch (error) {
        errors.push(String(error))
      }
      sent++
      await delay(pause)
    }
  })
  return {
    get sent() {
      return sent
    },
    errors,
    [Symbol.asyncDispose]: async () => {
      stopped = true
      await Promise.all(runs)
      agent.destroy()
    },
  }
}

/** A raw connection through a listener; resolves when the first byte came back. */
export async function openTcp(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  socket.write('x')
  await once(socket, 'data')
  return socket
}

/** A websocket through a listener, up to its handshake. */
export async function openWebSocket(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => undefined)
  socket.write(
    'GET /ws HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n',
  )
  const [data] = (await once(socket, 'data')) as [Buffer]
  if (!data.toString().startsWith('HTTP/1.1 101')) throw new Error(data.toString())
  return socket
}

/** Waits for something truthy, with a deadline. */
export async function until<T>(
  look: () => T | Promise<T>,
  what: string,
  within = 15_000,
): Promise<NonNullable<T>> {
  const end = performance.now() + within
  for (;;) {
    const found = await look()
    if (found !== undefined && found !== null && found !== false && found !== '' && found !== 0) {
      return found
    }
    if (performance.now() > end) throw new Error(`no ${what} within ${within} ms`)
    await delay(10)
  }
}

export function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

function adminGet(admin: string, path: string): Promise<string> {
  const unix = admin.startsWith('unix:')
  return new Promise((resolve, reject) => {
    const url = unix ? undefined : new URL(admin)
    const where = unix ? { socketPath: admin.slice(5) } : { host: url?.hostname, port: url?.port }
    const req = request({ ...where, path, agent: false, timeout: 2_000 }, (res) => {
      let body = ''
      res.setEncoding('utf8')
      res.on('data', (chunk: string) => (body += chunk))
      res.on('end', () => resolve(body))
      res.on('error', reject)
    })
    req.on('timeout', () => req.destroy(new Error('no answer')))
    req.on('error', reject)
    req.end()
  })
}
