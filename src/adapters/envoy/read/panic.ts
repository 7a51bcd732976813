/**
 * Envoy's panic mode, as arithmetic.
 *
 * A priority whose share of healthy hosts falls below the cluster's `healthy_panic_threshold`
 * (default 50 %) sends traffic to ALL its hosts, drained ones too, unless the priorities together
 * can still take everything. Draining hosts are left out of the sum, so one of two may be drained,
 * but not both: then nothing is left to compare with, and that is a panic.
 */
export interface PanicHost {
  readonly priority: number
  readonly healthy: boolean
  readonly degraded: boolean
  readonly excluded: boolean
}

export interface PanicRules {
  /** Percent. */
  readonly threshold: number
  /** Percent. */
  readonly overprovisioning: number
  /** With it a panic answers 503 instead of using every host. */
  readonly failOnPanic: boolean
}

/** Sums of one priority. */
interface Sums {
  readonly total: number
  readonly healthy: number
  readonly degraded: number
}

/** The priorities in which drained hosts get traffic. */
export function panickedPriorities(
  hosts: readonly PanicHost[],
  rules: PanicRules,
): ReadonlySet<number> {
  if (rules.threshold === 0 || rules.failOnPanic) return new Set()
  const sums = new Map<number, Sums>()
  for (const host of hosts) {
    const at = sums.get(host.priority) ?? { total: 0, healthy: 0, degraded: 0 }
    const counted = host.excluded ? 0 : 1
    sums.set(host.priority, {
      total: at.total + counted,
      healthy: at.healthy + (counted && host.healthy && !host.degraded ? 1 : 0),
      degraded: at.degraded + (counted && host.healthy && host.degraded ? 1 : 0),
    })
  }
  const availability = [...sums.values()].reduce(
    (sum, at) => sum + share(at.healthy + at.degraded, at.total, rules.overprovisioning),
    0,
  )
  if (availability >= 100) return new Set()
  return new Set(
    [...sums]
      .filter(([, at]) => share(at.healthy + at.degraded, at.total, 100) < rules.threshold)
      .map(([priority]) => priority),
  )
}

function share(part: number, total: number, factor: number): number {
  return total === 0 ? 0 : Math.min(100, (part * factor) / total)
}
