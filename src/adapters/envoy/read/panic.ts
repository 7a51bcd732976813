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
  /** Of the endpoint in its set. */
  readonly weight: number
}

export interface PanicRules {
  /** Percent, whole: Envoy rounds it. */
  readonly threshold: number
  /** Hosts count by their weight in what a priority can take (`weighted_priority_health`), not in its share. */
  readonly isWeighted: boolean
  /** Percent. */
  readonly overprovisioning: number
  /** With it a panic answers 503 instead of using every host. */
  readonly failOnPanic: boolean
}

/** Sums of one priority. */
interface Sums {
  total: number
  healthy: number
  degraded: number
}

/** The priorities in which drained hosts get traffic. */
export function panickedPriorities(
  hosts: readonly PanicHost[],
  rules: PanicRules,
): ReadonlySet<number> {
  if (rules.threshold === 0 || rules.failOnPanic) return new Set()
  const counts = sumsOf(hosts, () => 1)
  const loads = rules.isWeighted ? sumsOf(hosts, ({ weight }) => weight) : counts
  // Whole percents of each, as Envoy counts: three thirds are 99 %, and that is not everything.
  const availability = [...loads.values()].reduce(
    (sum, { healthy, degraded, total }) =>
      sum +
      Math.floor(share(healthy, total, rules.overprovisioning)) +
      Math.floor(share(degraded, total, rules.overprovisioning)),
    0,
  )
  if (availability >= 100) return new Set()
  const isPanicked = ({ healthy, degraded, total }: Sums): boolean =>
    availability === 0 || share(healthy + degraded, total, 100) < rules.threshold
  return new Set([...counts].filter(([, at]) => isPanicked(at)).map(([priority]) => priority))
}

function sumsOf(
  hosts: readonly PanicHost[],
  of: (host: PanicHost) => number,
): ReadonlyMap<number, Sums> {
  const sums = new Map<number, Sums>()
  for (const host of hosts) {
    const at = sums.get(host.priority) ?? { total: 0, healthy: 0, degraded: 0 }
    sums.set(host.priority, at)
    if (host.excluded) continue
    at.total += of(host)
    if (host.healthy && host.degraded) at.degraded += of(host)
    else if (host.healthy) at.healthy += of(host)
  }
  return sums
}

function share(part: number, total: number, factor: number): number {
  return total === 0 ? 0 : Math.min(100, (part * factor) / total)
}
