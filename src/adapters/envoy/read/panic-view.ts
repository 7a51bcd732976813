import { sizeOf, type ClusterRows } from '../codec/admin.js'
import type { Assignment, Endpoint } from '../codec/assignment.js'
import type { Aggregate, ClusterConfig } from '../codec/config-dump.js'
import type { SubsetRules } from '../codec/policies.js'
import type { ProxyView } from '../session/roster.js'
import { plannedHosts, rowBefore, rowHost, rowsOf } from './hosts.js'
import {
  balanceOf,
  levelsOf,
  recounted,
  type Level,
  type Levels,
  type PanicHost,
  type PanicRules,
} from './panic.js'
import { subsetsOf, type Subset } from './subsets.js'

const THRESHOLD = 50
const OVERPROVISIONING = 140
const MEANS = 'Envoy sends traffic to drained endpoints too'

/** Numbers for a person. */
export interface PanicVerdict {
  /** The cluster, or the subset of it that panics alone, in words. */
  readonly where: string
  readonly healthy: number
  readonly total: number
  readonly threshold: number
}

/** One part of a cluster that balances by itself: all of it, or a subset. */
interface Part {
  readonly subset: string | undefined
  readonly levels: Levels
}

type Hosts = readonly (PanicHost & { readonly member: string | undefined })[]

/** A cluster of one proxy, as it is or as a set would make it. */
interface Cluster {
  readonly view: ProxyView | undefined
  readonly cluster: string
  readonly rules: PanicRules
  readonly parts: readonly Part[]
}

/** Whether drained hosts get traffic all the same. */
export class PanicView {
  readonly #threshold: number | undefined
  /** By set and rules: both are the same objects from look to look. */
  readonly #subsets = new WeakMap<Assignment, Map<string, readonly Subset[]>>()

  /** @param threshold - percent, for proxies of which only load reports are known */
  constructor(threshold: number | undefined) {
    this.#threshold = threshold
  }

  /**
   * What a set would do to a member, by what each proxy knows of the hosts, or by the set that stands where none tells.
   *
   * @param standing - the endpoints of that set
   */
  planned(
    set: Assignment,
    views: readonly ProxyView[],
    member: string,
    standing: (member: string) => Endpoint | undefined,
  ): PanicVerdict | undefined {
    const read = views.flatMap((view) => rowsOf(view, set.cluster).map((rows) => ({ view, rows })))
    const tables: { view?: ProxyView; rows?: ClusterRows }[] = read.length === 0 ? [{}] : read
    const priority = set.endpoints.find((one) => one.member === member)?.priority ?? 0
    for (const { view, rows } of tables) {
      const cluster = rows?.cluster ?? set.cluster
      const { hosts, anew } = plannedHosts(set, (name) => {
        const row = rows?.hosts.get(name)
        if (row !== undefined) return rowBefore(row)
        const status = rows === undefined ? standing(name)?.status : undefined
        return status && { eds: status, failing: false, degraded: false }
      })
      const included = view && rows && !anew.has(priority) ? includedIn(view, rows) : 0
      const parts = this.#partsOf(hosts, levelsOf(hosts), member, configOf(view, cluster), set)
      const counted = parts.map((part) => withLevel(part, priority, included, 0))
      const rules = this.#rules(view, cluster, set)
      const part = reachedIn({ view, cluster, rules, parts: counted }, priority)
      const sums = part?.levels.get(priority)?.hosts
      if (part === undefined || sums === undefined) continue
      return {
        where: inWords(part, cluster),
        healthy: sums.healthy + sums.degraded,
        total: sums.total + sums.excluded,
        threshold: rules.threshold,
      }
    }
    return undefined
  }

  /** Why a drained member gets traffic from a proxy now; undefined: it does not. */
  now(
    view: ProxyView,
    rows: ClusterRows,
    set: Assignment | undefined,
    member: string,
  ): string | undefined {
    const { cluster } = rows
    const priority = rows.hosts.get(member)?.priority ?? 0
    const config = configOf(view, cluster)
    const hosts = hostsOf(rows)
    const levels = levelsOf(hosts, rows.plain)
    const parts = this.#partsOf(hosts, levels, member, config, set)
    const included = includedIn(view, rows)
    const counted = parts.map((part) => withLevel(part, priority, included, illIn(view, rows)))
    const rules = this.#rules(view, cluster, set)
    const found = reachedIn({ view, cluster, rules, parts: counted }, priority)
    if (found !== undefined) {
      const isShown = reachedIn({ view, cluster, rules, parts }, priority) !== undefined
      const why = isShown
        ? ''
        : ': Envoy has not counted the last changes of health yet (an endpoint that is not healthy is counted as before when it goes to DRAINING)'
      return `${inWords(found, cluster)} is in panic mode${why}${isShown ? ': ' : ', and '}${MEANS}`
    }
    const grown = view.reading?.tracker.panics(cluster) ?? 0
    if (grown === 0 || rules.threshold === 0 || rules.failOnPanic) return undefined
    const others = this.#all(config?.subsets, set).map((subset) => partOf(hosts, subset).levels)
    const isElsewhere = [levels, ...others].some((one) => balanceOf(one, rules).panicked.size > 0)
    if (isElsewhere) return undefined
    return `cluster ${cluster} is in panic mode for some requests (lb_healthy_panic, lb_subsets_fallback_panic: ${grown} more): ${MEANS}`
  }

  /** The same by what was published alone, for proxies whose hosts can't be read. */
  published(set: Assignment, member: string): string | undefined {
    const asItStands = (): undefined => undefined
    if (this.planned(set, [], member, asItStands) === undefined) return undefined
    return `too few of the published endpoints are healthy, the cluster is in panic mode: ${MEANS}; give panicThreshold where the clusters have another one`
  }

  #rules(view: ProxyView | undefined, cluster: string, set: Assignment | undefined): PanicRules {
    const config = configOf(view, cluster)
    return {
      threshold:
        view?.proxy?.facts?.panicThreshold ??
        config?.panicThreshold ??
        this.#threshold ??
        THRESHOLD,
      isWeighted: set?.isWeighted ?? false,
      overprovisioning: set?.overprovisioning ?? OVERPROVISIONING,
      failOnPanic: config?.failOnPanic ?? false,
    }
  }

  /** The whole cluster, and the subsets that the member is in. */
  #partsOf(
    hosts: Hosts,
    levels: Levels,
    member: string,
    config: ClusterConfig | undefined,
    set: Assignment | undefined,
  ): Part[] {
    const subsets = this.#all(config?.subsets, set).filter(({ members }) => members.has(member))
    return [{ subset: undefined, levels }, ...subsets.map((subset) => partOf(hosts, subset))]
  }

  #all(rules: SubsetRules | undefined, set: Assignment | undefined): readonly Subset[] {
    if (rules === undefined || set === undefined) return []
    const known = this.#subsets.get(set) ?? new Map<string, readonly Subset[]>()
    this.#subsets.set(set, known)
    const key = JSON.stringify(rules)
    let subsets = known.get(key)
    if (subsets === undefined) known.set(key, (subsets = subsetsOf(set.endpoints, rules)))
    return subsets
  }
}

/** The part of a cluster that sends requests to drained hosts of a priority; undefined: none does. */
function reachedIn({ view, cluster, rules, parts }: Cluster, priority: number): Part | undefined {
  const [whole] = parts
  return parts.find((part) => {
    const { panicked, loaded } = balanceOf(part.levels, rules)
    if (!panicked.has(priority)) return false
    // What an aggregate hands on has its priority already.
    const above = view?.reading?.above.get(cluster)
    if (above === undefined || above.isNamed) return loaded.has(priority)
    return above.aggregates.some((one) =>
      loadedBy(one, view, cluster, whole?.levels).has(`${cluster} ${priority}`),
    )
  })
}

/** The priorities, by cluster and number, to which an aggregate sends requests, with one of its clusters as given. */
function loadedBy(
  { parts, panicThreshold }: Aggregate,
  view: ProxyView | undefined,
  cluster: string,
  levels: Levels | undefined,
): ReadonlySet<string> {
  const shown = view?.reading?.beside ?? []
  const all = new Map<string, Level>()
  for (const part of parts) {
    const rows = shown.find((one) => one.cluster === part)
    const own = part === cluster ? levels : rows && levelsOf(hostsOf(rows), rows.plain)
    const sorted = [...(own ?? [])].sort(([one], [other]) => one - other)
    for (const [priority, level] of sorted) all.set(`${part} ${priority}`, level)
  }
  const threshold = view?.proxy?.facts?.panicThreshold ?? panicThreshold
  const rules = { isWeighted: false, overprovisioning: OVERPROVISIONING, failOnPanic: false }
  return balanceOf(all, { ...rules, threshold }).loaded
}

function configOf(view: ProxyView | undefined, cluster: string): ClusterConfig | undefined {
  return view?.proxy?.facts?.configs.get(cluster)
}

function hostsOf({ hosts }: ClusterRows): Hosts {
  return [...hosts.values()].map((row) => ({ ...rowHost(row), member: row.member }))
}

function partOf(hosts: Hosts, { name, members }: Subset): Part {
  const mine = hosts.filter(({ member }) => member !== undefined && members.has(member))
  return { subset: name, levels: levelsOf(mine) }
}

function withLevel(part: Part, priority: number, included: number, ill: number): Part {
  const level = part.levels.get(priority)
  if (level === undefined || (included <= 0 && ill <= 0)) return part
  return {
    ...part,
    levels: new Map([...part.levels, [priority, recounted(level, included, ill)]]),
  }
}

function inWords({ subset }: Part, cluster: string): string {
  return subset === undefined ? `cluster ${cluster}` : `the subset ${subset} of cluster ${cluster}`
}

/**
 * Draining hosts that Envoy still counts as not healthy: from not healthy to DRAINING it counts nothing anew. Its gauge
 * tells; where that is hidden, what their rows showed before.
 */
function includedIn({ reading }: ProxyView, { cluster, hosts }: ClusterRows): number {
  const left = [...hosts.values()].filter(({ excluded }) => excluded)
  const counted = reading?.stats.of(cluster, 'membership_excluded')
  if (counted !== undefined) return left.length - counted
  return left.filter(
    ({ member, failedCheck, ejected }) =>
      failedCheck || ejected || reading?.tracker.wasIll(cluster, member),
  ).length
}

/** Healthy hosts that Envoy's gauges do not count as such yet. */
function illIn({ reading }: ProxyView, rows: ClusterRows): number {
  const gauge = (name: string): number | undefined =>
    reading?.stats.of(rows.cluster, `membership_${name}`)
  const [healthy, degraded] = [gauge('healthy'), gauge('degraded')]
  if (healthy === undefined || degraded === undefined) return 0
  const ill = hostsOf(rows).filter((host) => !host.healthy).length
  return sizeOf(rows) - ill - (healthy + degraded)
}
