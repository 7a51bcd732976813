import type { ProxyReading } from './proxy.js'

/** What Envoy counts of requests that were sent in panic mode. */
const COUNTERS = ['lb_healthy_panic', 'lb_subsets_fallback_panic'] as const

/** How far a member was told of. */
interface Told {
  /** The look that it was told of last. */
  readonly look: number
  readonly count: number
  readonly grown: number
}

interface ClusterPanics {
  count: number
  /** The count of the look before. */
  before: number
  look: number
  readonly told: Map<string, Told>
}

/**
 * Growth of the panic counters, from the view of each member: looks are shared, and one that a change of another
 * member takes must not use up what a drained member has to hear.
 */
export class PanicCounts {
  readonly #clusters = new Map<string, ClusterPanics>()

  seen(cluster: string, { stats }: Pick<ProxyReading, 'stats'>): void {
    const count = COUNTERS.reduce((sum, name) => sum + (stats.of(cluster, name) ?? 0), 0)
    const known = this.#clusters.get(cluster)
    if (known === undefined) {
      this.#clusters.set(cluster, { count, before: count, look: 0, told: new Map() })
      return
    }
    known.before = known.count
    known.count = count
    known.look += 1
  }

  /** By how many they grew since the last look at which this was asked for that member; the same within one look. */
  since(cluster: string, member: string): number {
    const known = this.#clusters.get(cluster)
    if (known === undefined) return 0
    const { count, before, look, told } = known
    const last = told.get(member)
    if (last?.look === look) return last.grown
    const grown = Math.max(0, count - (last?.count ?? before))
    told.set(member, { look, count, grown })
    return grown
  }

  forget(cluster: string, member: string): void {
    this.#clusters.get(cluster)?.told.delete(member)
  }

  clear(): void {
    this.#clusters.clear()
  }
}
