/** Endpoint sets of several proxies, as plain JSON: what has to be compared or put together without being understood. */
import { isObject, type JsonObject } from '../../../kit/json.js'
import { canonical } from './canonical.js'
import { addressOf, field, keyOf, withoutKeys } from './proto-json.js'
import { toEdsStatus, type EdsStatus } from './status.js'

/** The state that wins where proxies show different ones, the last first: whoever drained had a reason. */
const CAUTION: readonly EdsStatus[] = [
  'UNKNOWN',
  'HEALTHY',
  'DEGRADED',
  'TIMEOUT',
  'UNHEALTHY',
  'DRAINING',
]

/** One endpoint of a set, and all of its locality but the endpoints. */
export interface Entry {
  readonly group: JsonObject
  readonly endpoint: JsonObject
  readonly status: EdsStatus
}

/** By the name of the member; of one that can't be named, by all that it is. */
export type Entries = ReadonlyMap<string, Entry>

/** What is called the name of a set. */
export function clusterOf(set: JsonObject): string {
  const named = field(set, 'cluster_name')
  return typeof named === 'string' ? named : ''
}

export function entriesOf(set: JsonObject): Entries {
  const entries = new Map<string, Entry>()
  for (const group of objectsIn(set, 'endpoints')) {
    const rest = withoutKeys(group, keyOf(group, 'lb_endpoints'))
    for (const endpoint of objectsIn(group, 'lb_endpoints')) {
      const said = field(endpoint, 'health_status')
      const known = typeof said === 'string' || typeof said === 'number' ? said : 'UNKNOWN'
      const status = toEdsStatus(known) ?? 'UNKNOWN'
      entries.set(nameOf(endpoint), { group: rest, endpoint, status })
    }
  }
  return entries
}

/**
 * What several proxies hold, as one list of sets: each endpoint that any of them has, as the first has it, in the most
 * cautious state that any of them shows. Proxies of one control plane may well hold different sets: by locality, by what
 * each needs to know, or because one of them is behind.
 */
export function union(proxies: readonly (readonly JsonObject[])[]): JsonObject[] {
  const found = new Map<
    string,
    { readonly first: JsonObject; readonly entries: Map<string, Entry> }
  >()
  for (const set of proxies.flat()) {
    const cluster = clusterOf(set)
    const known = found.get(cluster) ?? { first: set, entries: new Map<string, Entry>() }
    found.set(cluster, known)
    for (const [name, entry] of entriesOf(set)) {
      const before = known.entries.get(name)
      if (before === undefined) known.entries.set(name, entry)
      else if (CAUTION.indexOf(entry.status) > CAUTION.indexOf(before.status)) {
        known.entries.set(name, { ...before, status: entry.status })
      }
    }
  }
  return [...found.values()].map(({ first, entries }) => withEndpoints(first, entries))
}

function withEndpoints(set: JsonObject, entries: Entries): JsonObject {
  const groups = new Map<string, { readonly group: JsonObject; readonly endpoints: JsonObject[] }>()
  for (const { group, endpoint, status } of entries.values()) {
    const key = canonical([group])
    const known = groups.get(key) ?? { group, endpoints: [] }
    known.endpoints.push({ ...endpoint, [keyOf(endpoint, 'health_status')]: status })
    groups.set(key, known)
  }
  const endpoints = [...groups.values()].map(({ group, endpoints }) => ({
    ...group,
    lb_endpoints: endpoints,
  }))
  return { ...set, [keyOf(set, 'endpoints')]: endpoints }
}

/** The objects of a list under a field. */
function objectsIn(value: JsonObject, name: string): JsonObject[] {
  const list = field(value, name)
  return Array.isArray(list) ? list.filter(isObject) : []
}

function nameOf(endpoint: JsonObject): string {
  const inner = field(endpoint, 'endpoint')
  const { member } = addressOf(isObject(inner) ? field(inner, 'address') : undefined)
  return member ?? canonical(withoutKeys(endpoint, keyOf(endpoint, 'health_status')))
}
