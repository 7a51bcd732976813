import type { ClusterRows } from '../codec/admin.js'
import type { Assignment, Endpoint } from '../codec/assignment.js'
import type { ClusterConfig } from '../codec/config-dump.js'
import type { SubsetRules } from '../codec/policies.js'
import { takesWork } from '../codec/status.js'
import type { ProxyView } from '../session/roster.js'
import type { Stats } from '../session/stats.js'
import type { EndpointStore } from '../sources/store.js'
import { plannedHost, rowHost, rowsOf } from './hosts.js'
import { panickedPriorities, type PanicHost, type PanicRules } from './panic.js'
import { subsetsOf, type Subset } from './subsets.js'

const THRESHOLD = 50

/** Numbers for a person. */
export interface PanicVerdict {
  readonly cluster: string
  /** The subset of the cluster that panics alone. */
  readonly subset: string | undefined
  readonly healthy: number
  readonly total: number
  readonly threshold: number
}

export interface PanicOptions {
  readonly store: EndpointStore
  /** Percent, for proxies whose configuration can't be read. */
  readonly panicThreshold: number | undefined
}

/** One part of a cluster that balances by itself: all of it, or a subset. */
interface Part {
  readonly subset: Subset | undefined
  readonly hosts: readonly (PanicHost & { readonly member: string | undefined })[]
}

/** Whether drained hosts get traffic all the same. */
export class PanicView {
  readonly #options: PanicOptions
  /** By set and rules: both are the same objects from look to look. */
  readonly #subsets = new WeakMap<Assignment, Map<string, readonly Subset[]>>()

  constructor(options: PanicOptions) {
    this.#options = options
  }

  /** What a set would do to a member, by what each proxy knows of the hosts. */
  planned(set: Assignment, views: readonly ProxyView[], member: string): PanicVerdict | undefined {
    const read = views.flatMap((view) => rowsOf(view, set.cluster).map((rows) => ({ view, rows })))
    const tables: { view?: ProxyView; rows: ClusterRows | undefined }[] =
      read.length === 0 ? [{ rows: undefined }] : read
    const asBefore = this.#options.store.countedAsBefore(set)
    for (const { view, rows } of tables) {
      const config = view && rows && configOf(view, rows.cluster)
      const hosts = set.endpoints.map((endpoint) => ({
        ...plannedHost(endpoint, rows, asBefore),
        member: endpoint.member,
      }))
      const rules = this.#rules(config, set, view)
      const part = this.#partsOf(hosts, member, config, set).find((one) =>
        isPanicked(one, member, rules),
      )
      if (part === undefined) continue
      const counted = samePriority(part, member)
      return {
        cluster: rows?.cluster ?? set.cluster,
        subset: part.subset?.name,
        healthy: counted.filter((host) => host.healthy && !host.excluded).length,
        total: counted.length,
        threshold: rules.threshold,
      }
    }
    return undefined
  }

  /** Why a drained member gets traffic from a proxy now; undefined: it does not. */
  now(
    view: ProxyView,
    rows: ClusterRows,
    stats: Stats,
    set: Assignment | undefined,
    member: string,
  ): string | undefined {
    const config = configOf(view, rows.cluster)
    const rules = this.#rules(config, set, view)
    const what = `cluster ${rows.cluster}`
    const means = 'Envoy sends traffic to drained endpoints too'
    for (const part of this.#partsOf(hostsOf(rows), member, config, set)) {
      if (isPanicked(part, member, rules))
        return `${inWords(part, what)} is in panic mode: ${means}`
      const counted = asCounted(part, member, rows, stats) ?? this.#asSeen(part, rows, set)
      if (isPanicked(counted, member, rules)) {
        return `${inWords(part, what)} is in panic mode: Envoy has not counted the last changes of health yet (an endpoint that is not healthy is counted as before when it goes to DRAINING), and ${means}`
      }
    }
    const grown = view.tracker.panics(rows.cluster, member)
    if (grown === 0 || rules.threshold === 0 || rules.failOnPanic) return undefined
    if (this.#isElsewhere(rows, member, config, set, rules)) return undefined
    return `${what} is in panic mode for some requests (lb_healthy_panic, lb_subsets_fallback_panic: ${grown} more): ${means}`
  }

  /** The same by what was published alone, for proxies whose hosts can't be read. */
  published(set: Assignment, member: string): string | undefined {
    const asBefore = this.#options.store.countedAsBefore(set)
    const hosts = set.endpoints.map((endpoint) => ({
      ...plannedHost(endpoint, undefined, asBefore),
      member: endpoint.member,
    }))
    const part = { subset: undefined, hosts }
    if (!isPanicked(part, member, this.#rules(undefined, set))) return undefined
    return 'too few of the published endpoints are healthy, the cluster is in panic mode: Envoy sends traffic to drained endpoints too; give panicThreshold where the clusters have another one'
  }

  /**
   * Why it can't be said whether a member is the last of a subset; undefined: there is nothing to say.
   *
   * @param isSubset - whether the cluster is known to have subsets
   */
  blind(set: Assignment, member: string, isSubset: boolean | undefined): string | undefined {
    if (isSubset === false) return undefined
    const endpoint = set.endpoints.find((one) => one.member === member)
    if (endpoint?.labels === undefined) return undefined
    const keys = Object.keys(endpoint.labels)
    const rules = {
      selectors: [...keys.map((key) => [key]), keys],
      fallback: undefined,
      listAsAny: false,
    }
    const isAlone = subsetsOf(set.endpoints, rules).some(
      ({ members }) => members.has(member) && !hasOther(set.endpoints, members, member),
    )
    if (!isAlone) return undefined
    return `it can't be read whether '${set.cluster}' balances by subsets, and no healthy endpoint has the labels (envoy.lb) of this one: a subset without a healthy endpoint sends its requests to a drained one; list the admin API, and allow /config_dump`
  }

  #rules(
    config: ClusterConfig | undefined,
    set: Assignment | undefined,
    view?: ProxyView,
  ): PanicRules {
    return {
      threshold:
        view?.proxy?.facts?.panicThreshold ??
        config?.panicThreshold ??
        this.#options.panicThreshold ??
        THRESHOLD,
      isWeighted: set?.isWeighted ?? false,
      overprovisioning: set?.overprovisioning ?? 140,
      failOnPanic: config?.failOnPanic ?? false,
    }
  }

  /** The whole cluster, and the subsets that the member is in. */
  #partsOf(
    hosts: Part['hosts'],
    member: string,
    config: ClusterConfig | undefined,
    set: Assignment | undefined,
  ): Part[] {
    const subsets = this.#all(config?.subsets, set)
    return [
      { subset: undefined, hosts },
      ...subsets
        .filter(({ members }) => members.has(member))
        .map((subset) => partOf(hosts, subset)),
    ]
  }

  /** Whether a part of the cluster without the member panics, which explains what Envoy counted. */
  #isElsewhere(
    rows: ClusterRows,
    member: string,
    config: ClusterConfig | undefined,
    set: Assignment | undefined,
    rules: PanicRules,
  ): boolean {
    const hosts = hostsOf(rows)
    if (panickedPriorities(hosts, rules).size > 0) return true
    return this.#all(config?.subsets, set)
      .filter(({ members }) => !members.has(member))
      .some((subset) => panickedPriorities(partOf(hosts, subset).hosts, rules).size > 0)
  }

  /**
   * Where the gauges are hidden: drained hosts that may have been not healthy before, and are then counted as they
   * were, by what was published and by the checks that fail now.
   */
  #asSeen(part: Part, { hosts }: ClusterRows, set: Assignment | undefined): Part {
    const asBefore = set === undefined ? undefined : this.#options.store.countedAsBefore(set)
    const mayCount = (member: string | undefined): boolean => {
      const row = member === undefined ? undefined : hosts.get(member)
      return (
        row !== undefined && (asBefore?.has(row.member) === true || row.failedCheck || row.ejected)
      )
    }
    return {
      ...part,
      hosts: part.hosts.map((host) =>
        host.excluded && mayCount(host.member)
          ? { ...host, excluded: false, healthy: false }
          : host,
      ),
    }
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

function configOf(view: ProxyView, cluster: string): ClusterConfig | undefined {
  return view.proxy?.facts?.configs?.get(cluster)
}

function hostsOf({ hosts }: ClusterRows): Part['hosts'] {
  return [...hosts.values()].map((row) => ({ ...rowHost(row), member: row.member }))
}

function partOf(hosts: Part['hosts'], subset: Subset): Part {
  const mine = hosts.filter(({ member }) => member !== undefined && subset.members.has(member))
  return { subset, hosts: mine }
}

function samePriority({ hosts }: Part, member: string): Part['hosts'] {
  const mine = hosts.find((host) => host.member === member)
  return hosts.filter(({ priority }) => priority === (mine?.priority ?? 0))
}

function isPanicked(part: Part, member: string, rules: PanicRules): boolean {
  const mine = part.hosts.find((host) => host.member === member)
  return panickedPriorities(part.hosts, rules).has(mine?.priority ?? 0)
}

function inWords({ subset }: Part, cluster: string): string {
  return subset === undefined ? cluster : `the subset ${subset.name} of ${cluster}`
}

/**
 * The hosts as Envoy's own gauges count them, `membership_*`: where fewer are healthy, or left out of the
 * sum, than the rows show, they are taken from those of the member's priority. Undefined: the gauges are hidden.
 */
function asCounted(part: Part, member: string, rows: ClusterRows, stats: Stats): Part | undefined {
  const shown = hostsOf(rows)
  const gauge = (name: string): number | undefined => stats.of(rows.cluster, `membership_${name}`)
  const [healthy, degraded, excluded] = [gauge('healthy'), gauge('degraded'), gauge('excluded')]
  if (healthy === undefined || degraded === undefined || excluded === undefined) return undefined
  const count = (is: (host: PanicHost) => boolean): number => shown.filter(is).length
  let included = count((host) => host.excluded) - excluded
  let ill = count((host) => host.healthy) - (healthy + degraded)
  if (included <= 0 && ill <= 0) return part
  const mine = new Set(samePriority(part, member))
  const hosts = part.hosts.map((host) => {
    if (!mine.has(host)) return host
    if (host.excluded && included-- > 0) return { ...host, excluded: false, healthy: false }
    if (host.healthy && !host.excluded && ill-- > 0) return { ...host, healthy: false }
    return host
  })
  return { ...part, hosts }
}

function hasOther(
  endpoints: readonly Endpoint[],
  members: ReadonlySet<string>,
  member: string,
): boolean {
  return endpoints.some(
    (other) =>
      other.member !== undefined &&
      other.member !== member &&
      members.has(other.member) &&
      takesWork(other.status),
  )
}
