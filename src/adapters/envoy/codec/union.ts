import type { JsonObject } from '../../../kit/json.js'
import { canonical } from './canonical.js'
import { field, keyOf, withoutKeys } from './proto-json.js'
import { CAUTION, nameOf, objectsIn } from './raw-sets.js'
import { toEdsStatus, type EdsStatus } from './status.js'

/** One endpoint of a set, and all of its locality but the endpoints. */
interface Entry {
  readonly group: JsonObject
  readonly endpoint: JsonObject
  status: EdsStatus
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
    const named = field(set, 'cluster_name')
    const cluster = typeof named === 'string' ? named : ''
    const known = found.get(cluster) ?? { first: set, entries: new Map<string, Entry>() }
    found.set(cluster, known)
    for (const [name, entry] of entriesOf(set)) {
      const before = known.entries.get(name)
      if (before === undefined) known.entries.set(name, entry)
      else if (CAUTION.indexOf(entry.status) > CAUTION.indexOf(before.status)) {
        before.status = entry.status
      }
    }
  }
  return [...found.values()].map(({ first, entries }) => withEndpoints(first, entries))
}

function entriesOf(set: JsonObject): (readonly [string, Entry])[] {
  return objectsIn(set, 'endpoints').flatMap((group) =>
    objectsIn(group, 'lb_endpoints').map((endpoint) => {
      const said = field(endpoint, 'health_status')
      const known = typeof said === 'string' || typeof said === 'number' ? said : 'UNKNOWN'
      const rest = withoutKeys(group, keyOf(group, 'lb_endpoints'))
      const status = toEdsStatus(known) ?? 'UNKNOWN'
      return [nameOf(endpoint), { group: rest, endpoint, status }] as const
    }),
  )
}

function withEndpoints(set: JsonObject, entries: ReadonlyMap<string, Entry>): JsonObject {
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
