import type { ClusterRows } from '../codec/admin.js'
import type { EdsStatus } from '../codec/status.js'
import type { Stats } from './stats.js'
import { Workers } from './workers.js'

/** Since when a proxy shows an endpoint as it does. */
interface Shown {
  readonly eds: EdsStatus
  readonly since: number
  /** It was UNHEALTHY before, and DRAINING since. */
  readonly wasIll: boolean
}

/** The endpoints of a cluster that are not HEALTHY, or were not. */
interface ShownCluster {
  readonly since: number
  readonly members: Map<string, Shown>
}

/** Requests in panic mode, and how many came when they did last. */
interface Panics {
  readonly count: number
  readonly grown: number
  readonly at: number
}

/** What Envoy counts of requests that were sent in panic mode. */
const PANICS = ['lb_healthy_panic', 'lb_subsets_fallback_panic'] as const
/** Looks are shared by drains, so what one of them shows is told for a while; milliseconds. */
const TOLD = 1_000
/** Endpoints that are HEALTHY again are remembered for a while, not for ever. */
const REMEMBERED = 1_000

interface Taken {
  readonly version: string
  readonly since: number
}

/** What one look at a process showed. */
interface Look {
  /** By the monotonic clock. */
  readonly at: number
  readonly clusters: readonly ClusterRows[]
  readonly stats: Stats
}

/** What is remembered of one process from look to look. */
export class ScopeTracker {
  readonly #shown = new Map<string, ShownCluster>()
  readonly #versions = new Map<string, Taken[]>()
  readonly #rejected = new Map<string, { readonly count: number; readonly version: string }>()
  readonly #refusing = new Set<string>()
  readonly #panics = new Map<string, Panics>()
  readonly #workers = new Workers()
  #at = 0

  seen(look: Look): void {
    this.#at = look.at
    this.#workers.seen(look.stats, look.at)
    for (const rows of look.clusters) {
      this.#seenRows(rows, look.at)
      this.#seenVersion(rows.cluster, look)
      this.#seenPanics(rows.cluster, look)
    }
  }

  /** Since when this proxy shows this status; undefined: it does not. */
  shownSince(cluster: string, member: string, eds: EdsStatus): number | undefined {
    const known = this.#shown.get(cluster)
    const shown = known?.members.get(member)
    if (shown === undefined) return eds === 'HEALTHY' ? known?.since : undefined
    return shown.eds === eds ? shown.since : undefined
  }

  /** Whether an endpoint went from UNHEALTHY to DRAINING there: Envoy may count it as before. */
  wasIll(cluster: string, member: string): boolean {
    return this.#shown.get(cluster)?.members.get(member)?.wasIll === true
  }

  /**
   * When this proxy was seen with one of these versions. A version is a hash of its content and can
   * come back: what was seen before `notBefore` counts only while it is the present one.
   */
  takenAt(cluster: string, versions: ReadonlySet<string>, notBefore: number): number | undefined {
    const taken = this.#versions.get(cluster) ?? []
    return taken.find(
      ({ version, since }, i) =>
        versions.has(version) && (since >= notBefore || i === taken.length - 1),
    )?.since
  }

  /** Whether it refused an update since it last took one. */
  isRefusing(cluster: string): boolean {
    return this.#refusing.has(cluster)
  }

  /** Why a worker may not have taken what the rows show. */
  get still(): string | undefined {
    return this.#workers.still(this.#at)
  }

  /** How many requests in panic mode came lately. */
  panics(cluster: string): number {
    const known = this.#panics.get(cluster)
    return known !== undefined && this.#at - known.at < TOLD ? known.grown : 0
  }

  #seenRows({ cluster, hosts }: ClusterRows, at: number): void {
    const known = this.#shown.get(cluster) ?? { since: at, members: new Map<string, Shown>() }
    this.#shown.set(cluster, known)
    const { members } = known
    for (const { member, eds } of hosts.values()) {
      const before = members.get(member)
      if (before?.eds === eds || (before === undefined && eds === 'HEALTHY')) continue
      const wasIll = eds === 'DRAINING' && before?.eds === 'UNHEALTHY'
      members.set(member, { eds, since: at, wasIll })
    }
    // Whoever is not listed by its name is HEALTHY, or gone.
    for (const [member, { eds }] of members) {
      if (hosts.has(member)) continue
      if (eds !== 'HEALTHY') members.set(member, { eds: 'HEALTHY', since: at, wasIll: false })
      else if (members.size > hosts.size + REMEMBERED) members.delete(member)
    }
  }

  #seenPanics(cluster: string, { stats, at }: Look): void {
    const count = PANICS.reduce((sum, name) => sum + (stats.of(cluster, name) ?? 0), 0)
    const known = this.#panics.get(cluster)
    if (known === undefined) this.#panics.set(cluster, { count, grown: 0, at: -Infinity })
    else if (count > known.count)
      this.#panics.set(cluster, { count, grown: count - known.count, at })
  }

  #seenVersion(cluster: string, { stats, at }: Look): void {
    const version = stats.versionOf(cluster)
    if (version === undefined) return
    const taken = this.#versions.get(cluster) ?? []
    if (taken.at(-1)?.version !== version) {
      taken.push({ version, since: at })
      if (taken.length > 64) taken.shift()
      this.#versions.set(cluster, taken)
    }
    const count = ['update_rejected', 'update_failure'].reduce(
      (sum, name) => sum + (stats.of(cluster, name) ?? 0),
      0,
    )
    const known = this.#rejected.get(cluster)
    if (known === undefined && version === '' && count > 0) this.#refusing.add(cluster)
    if (known !== undefined && version !== known.version) this.#refusing.delete(cluster)
    else if (known !== undefined && count > known.count) this.#refusing.add(cluster)
    this.#rejected.set(cluster, { count, version })
  }
}
