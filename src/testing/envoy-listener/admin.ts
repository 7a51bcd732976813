import type { Settings } from './options.js'
import type { Process } from './process.js'

export interface AdminReply {
  readonly status: number
  readonly text: string
  /** The process ends after it. */
  readonly quits?: boolean
}

/** Bytes that stay in the buffers for a client that does not read. */
const BUFFERED = 777_858

const V3 = 'type.googleapis.com/envoy.extensions.filters'

/** One request to the admin API: reads are GET, commands POST, and a path that is not allowed is a 403. */
export function answerAdmin(
  method: string,
  target: string,
  settings: Settings,
  process: Process,
): AdminReply {
  const url = new URL(target, 'http://admin')
  const { allowPaths } = settings
  if (allowPaths !== undefined && !allowPaths.some((path) => url.pathname.startsWith(path))) {
    return { status: 403, text: `request to path ${target} not allowed\n` }
  }
  switch (url.pathname) {
    case '/ready':
      return {
        status: process.failing ? 503 : 200,
        text: process.failing ? 'DRAINING\n' : 'LIVE\n',
      }
    case '/server_info':
      return { status: 200, text: serverInfo(settings, process) }
    case '/stats':
      return { status: 200, text: stats(settings, process, url.searchParams.get('filter')) }
    case '/config_dump':
      return { status: 200, text: configDump(settings, process, url.searchParams) }
    case '/healthcheck/fail':
    case '/healthcheck/ok':
    case '/drain_listeners':
    case '/quitquitquit':
      return method === 'POST'
        ? command(url, settings, process)
        : { status: 405, text: `Method ${method} not allowed, POST required.` }
    default:
      return { status: 404, text: 'invalid path. admin commands are:\n' }
  }
}

function command(
  { pathname: path, searchParams: query }: URL,
  { drainTime }: Settings,
  process: Process,
): AdminReply {
  if (path.startsWith('/healthcheck/')) process.setFailing(path.endsWith('/fail'))
  else if (path === '/drain_listeners') {
    const isGraceful = query.has('graceful')
    const wait = query.has('skip_exit') ? Infinity : isGraceful ? drainTime : 0
    if (query.has('skip_exit') && !isGraceful)
      return { status: 400, text: 'skip_exit requires graceful\n' }
    process.closesAt ??= performance.now() + wait
  }
  return { status: 200, text: 'OK\n', quits: path === '/quitquitquit' }
}

function serverInfo(settings: Settings, process: Process): string {
  const { current, all } = process.uptime
  return JSON.stringify({
    version: `0000000000000000000000000000000000000000/${settings.version}/Clean/RELEASE/fake`,
    state: process.failing ? 'DRAINING' : 'LIVE',
    uptime_current_epoch: `${current}s`,
    uptime_all_epochs: `${all}s`,
    command_line_options: {
      restart_epoch: process.epoch,
      parent_shutdown_time: `${settings.parentShutdown / 1_000}s`,
    },
    node: { id: settings.node, cluster: 'fake', user_agent_name: 'envoy' },
  })
}

function stats({ hiddenStats }: Settings, process: Process, filter: string | null): string {
  const pattern = filter === null ? undefined : new RegExp(filter)
  const { open, begun, checks, merged, uptime } = process
  const requests = open.requests + (merged?.requests ?? 0)
  const http = open.requests + open.idle + open.slow
  const values: Readonly<Record<string, number>> = {
    'http.admin.downstream_cx_active': 1,
    'http.admin.downstream_rq_5xx': 0,
    'http.admin.downstream_rq_active': 1,
    'http.in.downstream_cx_active': http,
    'http.in.downstream_cx_http3_active': 0,
    'http.in.downstream_cx_total': begun.connections,
    'http.in.downstream_cx_tx_bytes_buffered': open.slow * BUFFERED,
    'http.in.downstream_cx_upgrades_active': open.upgrades,
    'http.in.downstream_rq_5xx': 0,
    'http.in.downstream_rq_active': requests,
    'http.in.downstream_rq_total': begun.requests + checks.passed + checks.failed,
    'http.in.health_check.failed': checks.failed,
    'http.in.health_check.request_total': checks.passed + checks.failed,
    'listener.0.0.0.0_8080.downstream_cx_active': http,
    'listener.0.0.0.0_8080.downstream_cx_total': begun.connections,
    'listener.0.0.0.0_8080.downstream_pre_cx_active': 0,
    'listener.0.0.0.0_8080.worker_0.downstream_cx_active': http,
    'listener.0.0.0.0_9000.downstream_cx_active': open.tcp,
    'listener.0.0.0.0_9000.downstream_cx_total': begun.tcp,
    'listener.0.0.0.0_9000.downstream_pre_cx_active': 0,
    'listener.admin.downstream_cx_active': 1,
    // A child adds what its parent counted, and a parent has closed its own.
    'listener_manager.listener_stopped': process.closed || merged !== undefined ? 2 : 0,
    'listener_manager.total_listeners_active': 2,
    'listener_manager.total_listeners_draining': 0,
    'server.parent_connections': merged?.connections ?? 0,
    'server.total_connections': http + open.tcp,
    'server.uptime': merged?.uptime ?? uptime.all,
  }
  return Object.entries(values)
    .filter(([name]) => pattern?.test(name) ?? true)
    .filter(([name]) => !hiddenStats.some((hidden) => hidden.test(name)))
    .map(([name, value]) => `${name}: ${value}\n`)
    .join('')
}

function configDump(settings: Settings, { bootAt }: Process, query: URLSearchParams): string {
  const last_updated = bootAt.toISOString()
  if (query.get('mask') === 'last_updated') return JSON.stringify({ configs: [{ last_updated }] })
  if (query.get('resource') !== 'static_listeners') return '{}'
  const healthCheck = {
    '@type': `${V3}.http.health_check.v3.HealthCheck`,
    pass_through_mode: false,
  }
  const listeners = [
    listener('http', 8080, {
      '@type': `${V3}.network.http_connection_manager.v3.HttpConnectionManager`,
      stat_prefix: 'in',
      http_filters: [
        ...(settings.healthCheck ? [{ name: 'health', typed_config: healthCheck }] : []),
        { name: 'router', typed_config: { '@type': `${V3}.http.router.v3.Router` } },
      ],
    }),
    listener('tcp', 9000, {
      '@type': `${V3}.network.tcp_proxy.v3.TcpProxy`,
      stat_prefix: 'raw',
      cluster: 'web',
    }),
  ]
  return JSON.stringify({ configs: listeners.map((one) => ({ listener: one, last_updated })) })
}

function listener(name: string, port: number, filter: unknown): unknown {
  const address = { socket_address: { address: '0.0.0.0', port_value: port } }
  return { name, address, filter_chains: [{ filters: [{ name, typed_config: filter }] }] }
}
