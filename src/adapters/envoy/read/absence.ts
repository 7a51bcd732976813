import { quote } from '../../../provider/quote.js'
import type { OtherCluster } from '../codec/config-dump.js'

/** What is known of the clusters of a fleet. */
export interface KnownClusters {
  /** The set of each EDS cluster, by the cluster's name. */
  readonly services: ReadonlyMap<string, string>
  readonly others: readonly OtherCluster[]
  /** The sets that can be changed here, by the names that members go by. */
  readonly pools: readonly string[]
}

/** Names that are listed; the rest is counted. */
const NAMED = 12

/** Why a pool has no endpoint set here, and what to do. */
export function whyNoSet(pool: string, { services, others, pools }: KnownClusters): string {
  const there = `there ${pools.length === 0 ? 'is none' : `is ${listed(pools)}`}`
  const service = services.get(pool)
  if (service !== undefined) {
    const named = service === pool ? '' : ` '${quote(service, 80)}'`
    return `cluster ${quote(pool, 80)} takes an endpoint set${named} that is not served here, ${there}: give it to the sink`
  }
  const other = others.find(({ cluster }) => cluster === pool)
  if (other === undefined) return `cluster ${quote(pool, 80)} has no endpoint set here, ${there}`
  if (other.parts.length > 0) {
    return `cluster ${quote(pool, 80)} is an aggregate of ${listed(other.parts)}: its endpoints are drained there, name that cluster as the pool`
  }
  return `cluster ${quote(pool, 80)} is of type ${quote(other.type, 80)}: only endpoints of EDS clusters can be drained, ${there}; make it EDS, or drain where its addresses come from`
}

function listed(names: readonly string[]): string {
  const named = names.slice(0, NAMED).map((name) => quote(name, 80))
  const more = names.length - named.length
  return `${named.join(', ')}${more === 0 ? '' : ` and ${more} more`}`
}
