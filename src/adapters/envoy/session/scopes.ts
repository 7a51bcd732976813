import type { ProxyReading } from './proxy.js'
import type { EdsStatus } from '../codec/status.js'
import { PanicCounts } from './panic-counts.js'
import { UnlistedBounds, type Unlisted } from './unlisted.js'

/** Since when a proxy shows an endpoint as it does. */
interface Shown {
  readonly eds: EdsStatus
  readonly since: number
}

interface Taken {
  readonly version: string
  readonly since: number
}

/** What is remembered of one proxy from look to look. A new start of it begins anew. */
export class ScopeTracker {
  #incarnation: string | undefined
  readonly #rows = new Map<string, Map<string, Shown>>()
  readonly #versions = new Map<string, Taken[]>()
  readonly #rejected = new Map<string, { readonly count: number; readonly version: string }>()
  readonly #refusing = new Set<string>()
  readonly #unlisted = new UnlistedBounds()
  readonly #panics = new PanicCounts()

  seen(reading: ProxyReading): void {
    if (this.#incarnation !== reading.incarnation) {
      this.#incarnation = reading.incarnation
      this.#rows.clear()
      this.#versions.clear()
      this.#rejected.clear()
      this.#refusing.clear()
      this.#panics.clear()
      this.#unlisted.clear()
    }
    for (const { cluster, hosts } of reading.clusters) {
      const shown = this.#rows.get(cluster) ?? new Map<string, Shown>()
      this.#rows.set(cluster, shown)
      for (const { member, eds } of hosts.values()) {
        if (shown.get(member)?.eds !== eds) shown.set(member, { eds, since: reading.at })
      }
      if (shown.size > hosts.size) {
        for (const member of shown.keys()) {
          if (hosts.has(member)) continue
          shown.delete(member)
          this.#panics.forget(cluster, member)
        }
      }
      this.#seenVersion(cluster, reading)
      this.#panics.seen(cluster, reading)
      this.#unlisted.seen(cluster, reading.unlisted.get(cluster), reading.at)
    }
  }

  /** What hosts that the cluster no longer lists may still hold, by this look; undefined: not told. */
  unlisted(cluster: string): Pick<Unlisted, 'most' | 'isExact'> | undefined {
    return this.#unlisted.of(cluster)
  }

  /** Since when this proxy shows this status; undefined: it does not. */
  shownSince(cluster: string, member: string, eds: EdsStatus): number | undefined {
    const shown = this.#rows.get(cluster)?.get(member)
    return shown?.eds === eds ? shown.since : undefined
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

  /** By how many requests in panic mode a cluster's count grew since that member was last asked about. */
  panics(cluster: string, member: string): number {
    return this.#panics.since(cluster, member)
  }

  #seenVersion(cluster: string, reading: ProxyReading): void {
    const version = reading.stats.versionOf(cluster)
    if (version === undefined) return
    const taken = this.#versions.get(cluster) ?? []
    if (taken.at(-1)?.version !== version) {
      taken.push({ version, since: reading.at })
      if (taken.length > 64) taken.shift()
      this.#versions.set(cluster, taken)
    }
    const count = ['update_rejected', 'update_failure'].reduce(
      (sum, name) => sum + (reading.stats.of(cluster, name) ?? 0),
      0,
    )
    const known = this.#rejected.get(cluster)
    if (known !== undefined && version !== known.version) this.#refusing.delete(cluster)
    else if (known !== undefined && count > known.count) this.#refusing.add(cluster)
    this.#rejected.set(cluster, { count, version })
  }
}
