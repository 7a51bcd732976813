import type { Backend } from '../process/backend.js'
import { ADMIN } from '../process/server.js'
import type { Server } from '../process/server.js'
import type { Worker } from '../process/worker.js'

const STATE_COLUMNS =
  'be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight srv_iweight ' +
  'srv_time_since_last_change srv_check_status srv_check_result srv_check_health srv_check_state ' +
  'srv_agent_state bk_f_forced_id srv_f_forced_id srv_fqdn srv_port srvrecord srv_use_ssl ' +
  'srv_check_port srv_check_addr srv_agent_addr srv_agent_port'

const CONN_COLUMNS =
  'bkname/svname bkid/svid addr port - purge_delay used_cur used_max need_est unsafe_nb safe_nb ' +
  'idle_lim idle_cur idle_per_thr[2]'

const NO_BACKEND = "Can't find backend.\n"

/** `show servers state [<backend>]`: by backend only, a server's path is no backend. */
export function showServersState(worker: Worker, name: string | undefined): string {
  const backends = choose(worker, name)
  if (!backends) return NO_BACKEND
  const rows = backends.flatMap((b) => b.servers.map((server) => stateRow(b, server)))
  return `1\n# ${STATE_COLUMNS}\n${rows.map((row) => `${row}\n`).join('')}`
}

/** `show servers conn [<backend>]`. */
export function showServersConn(worker: Worker, name: string | undefined): string {
  const backends = choose(worker, name)
  if (!backends) return NO_BACKEND
  const rows = backends.flatMap((b) => b.servers.map((server) => connRow(b, server)))
  return `# ${CONN_COLUMNS}\n${rows.map((row) => `${row}\n`).join('')}`
}

function choose(worker: Worker, name: string | undefined): readonly Backend[] | undefined {
  if (name === undefined) return worker.backends
  const found = worker.backend(name)
  return found && [found]
}

function stateRow(backend: Backend, server: Server): string {
  const since = Math.floor((Date.now() - server.changedAt) / 1_000)
  return [
    ...[backend.id, backend.name, server.id, server.name, server.address],
    ...[server.operation, server.admin, server.weight, server.config.weight, since],
    ...checkFields(server),
    ...[0, 0, 0, '-', server.port, '-', 0, 0, '-', '-', 0],
  ].join(' ')
}

/** Status, result, health and state of the checks, in HAProxy's own numbers. */
function checkFields(server: Server): readonly number[] {
  const { check } = server.config
  const disabled = (server.admin & ADMIN.configuredMaint) !== 0
  if (!check || !server.checking) {
    return [1, 0, server.health, disabled ? 8 : 0]
  }
  const passed = server.lastCheck === 'passed'
  const [status, result] = server.lastCheck === 'none' ? [1, 0] : passed ? [6, 3] : [8, 2]
  return [status, result, server.inMaint ? 0 : server.health, server.inMaint ? 14 : 6]
}

function connRow(backend: Backend, server: Server): string {
  const http = backend.mode === 'http'
  const idle = server.pooled()
  const used = http ? server.sessions.size : 0
  const { smax } = server.counters
  return [
    ...[`${backend.name}/${server.name}`, `${backend.id}/${server.id}`],
    ...[server.address, server.port, '-', 5_000, used, smax, http ? smax : 1],
    ...[0, idle, -1, idle, idle, 0],
  ].join(' ')
}
