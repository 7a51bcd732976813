/** A recorded JSON reply of `/clusters` in the text form of the same moment, as Envoy writes it. */
interface Reply {
  readonly cluster_statuses: readonly {
    readonly name: string
    readonly eds_service_name?: string
    readonly host_statuses?: readonly Host[]
  }[]
}

interface Host {
  readonly address: {
    readonly socket_address: { readonly address: string; readonly port_value: number }
  }
  readonly stats: readonly { readonly name: string; readonly value?: string }[]
  readonly health_status: Readonly<Record<string, string | boolean>>
  readonly weight?: number
  readonly priority?: number
}

const FLAGS: Readonly<Record<string, string>> = {
  failed_active_health_check: 'failed_active_hc',
  failed_outlier_check: 'failed_outlier_check',
  failed_active_degraded_check: 'degraded_active_hc',
  pending_dynamic_removal: 'pending_dynamic_removal',
  pending_active_hc: 'pending_active_hc',
}
const STATUSES: Readonly<Record<string, string>> = {
  DRAINING: 'eds_status_draining',
  UNHEALTHY: 'failed_eds_health',
  DEGRADED: 'degraded_eds_health',
}

export function textForm(json: string): string {
  const { cluster_statuses: clusters } = JSON.parse(json) as Reply
  const lines = clusters.flatMap(
    ({ name, eds_service_name: service, host_statuses: hosts = [] }) => [
      ...(service === undefined ? [] : [`${name}::eds_service_name::${service}`]),
      `${name}::added_via_api::false`,
      ...hosts.flatMap((host) => linesOf(host).map((line) => `${name}::${line}`)),
    ],
  )
  return lines.map((line) => `${line}\n`).join('')
}

function linesOf({
  address,
  stats,
  health_status: health,
  weight = 1,
  priority = 0,
}: Host): string[] {
  const { address: host, port_value: port } = address.socket_address
  const status = STATUSES[String(health['eds_health_status'])]
  const flags = Object.entries(FLAGS).flatMap(([key, flag]) => (health[key] === true ? [flag] : []))
  if (status !== undefined) flags.push(status)
  const values = [
    ...stats.map(({ name, value = '0' }) => [name, value]),
    ['health_flags', flags.length === 0 ? 'healthy' : `/${flags.join('/')}`],
    ['weight', String(weight)],
    ['priority', String(priority)],
  ]
  return values.map(([key, value]) => `${host}:${port}::${key}::${value}`)
}
