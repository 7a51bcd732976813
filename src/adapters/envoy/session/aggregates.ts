import { namedClusters, type Aggregate } from '../codec/config-dump.js'
import type { AdminLink } from '../../../kit/envoy/admin.js'
import type { ProxyClusters } from './configuration.js'

/** How requests come to a cluster that is a part of aggregates. */
export interface Above {
  readonly aggregates: readonly Aggregate[]
  /** A route or a listener may name it too. */
  readonly isNamed: boolean
}

/** Listeners and routes come and go without a word in the statistics that a look reads: they are read again after this long. */
const AGE = 1_000

/** Which clusters of one proxy are parts of aggregates, and whether anything else sends requests to them. */
export class Aggregates {
  readonly #from: string
  readonly #now: () => number
  #named: { readonly at: number; readonly clusters: ReadonlyMap<string, boolean> } | undefined

  /** @param now - monotonic */
  constructor(from: string, now: () => number) {
    this.#from = from
    this.#now = now
  }

  async above(
    { others }: ProxyClusters,
    clusters: readonly string[],
    link: AdminLink,
  ): Promise<ReadonlyMap<string, Above>> {
    const found = clusters.flatMap((cluster) => {
      const aggregates = others.filter(({ parts }) => parts.includes(cluster))
      return aggregates.length === 0 ? [] : [{ cluster, aggregates }]
    })
    if (found.length === 0) return new Map()
    const names = found.map(({ cluster }) => cluster)
    const named = await this.#namedOf(names, link)
    return new Map(
      found.map(({ cluster, aggregates }) => [
        cluster,
        { aggregates, isNamed: named.get(cluster) !== false },
      ]),
    )
  }

  async #namedOf(names: readonly string[], link: AdminLink): Promise<ReadonlyMap<string, boolean>> {
    const known = this.#named
    const isFresh = known !== undefined && this.#now() - known.at <= AGE
    if (isFresh && names.every((name) => known.clusters.has(name))) return known.clusters
    const named = namedClusters(await link.get('/config_dump'), names, this.#from)
    const clusters = new Map(names.map((name) => [name, named.has(name)]))
    this.#named = { at: this.#now(), clusters }
    return clusters
  }
}
