/** An endpoint set as the fake understands it, whichever way it came. */
export interface ReceivedSet {
  readonly service: string
  readonly endpoints: readonly ReceivedEndpoint[]
}

export interface ReceivedEndpoint {
  readonly address: string
  readonly port: number
  readonly hostname: string
  readonly status: Status
  readonly weight: number | undefined
  readonly priority: number
  /** Its `envoy.lb` metadata. */
  readonly labels: Readonly<Record<string, unknown>>
  readonly locality: { readonly region: string; readonly zone: string; readonly subZone: string }
}

export const STATUSES = [
  'UNKNOWN',
  'HEALTHY',
  'UNHEALTHY',
  'DRAINING',
  'TIMEOUT',
  'DEGRADED',
] as const
export type Status = (typeof STATUSES)[number]

type Value = Readonly<Record<string, unknown>>

/** EDS JSON as Envoy reads it: what it does not understand is dropped without a word. */
export function readJsonSet(value: unknown): ReceivedSet {
  const set = object(value)
  return {
    service: text(get(set, 'cluster_name')),
    endpoints: list(get(set, 'endpoints')).flatMap((group) => {
      const locality = object(get(group, 'locality'))
      return list(get(group, 'lb_endpoints')).map((lb) => {
        const endpoint = object(get(lb, 'endpoint'))
        const address = object(get(endpoint, 'address'))
        const socket = object(get(address, 'socket_address'))
        const pipe = object(get(address, 'pipe'))
        const weight = get(lb, 'load_balancing_weight')
        return {
          address: text(get(socket, 'address')) || text(get(pipe, 'path')),
          port: number(get(socket, 'port_value')),
          hostname: text(get(endpoint, 'hostname')),
          status: status(get(lb, 'health_status')),
          weight: weight === undefined || weight === null ? undefined : number(weight),
          priority: number(get(group, 'priority')),
          labels: object(object(get(object(get(lb, 'metadata')), 'filter_metadata'))['envoy.lb']),
          locality: {
            region: text(get(locality, 'region')),
            zone: text(get(locality, 'zone')),
            subZone: text(get(locality, 'sub_zone')),
          },
        }
      })
    }),
  }
}

/** The member name the admin API uses. */
export function nameOf({ address, port }: { address: string; port: number }): string {
  if (address.startsWith('/')) return address
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`
}

function status(value: unknown): Status {
  if (typeof value === 'number') return STATUSES[value] ?? 'UNKNOWN'
  const name = text(value).toUpperCase()
  return STATUSES.find((known) => known === name) ?? 'UNKNOWN'
}

function get(value: Value, name: string): unknown {
  const camel = name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
  return value[name] ?? value[camel]
}

export function object(value: unknown): Value {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Value)
    : {}
}

export function list(value: unknown): readonly Value[] {
  return Array.isArray(value) ? value.map(object) : []
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function number(value: unknown): number {
  return typeof value === 'number' || typeof value === 'string' ? Number(value) : 0
}
