/**
 * Envoy's panic mode, as arithmetic.
 *
 * A priority whose share of healthy hosts falls below the cluster's `healthy_panic_threshold` (default 50 %) sends its
 * requests to ALL its hosts, drained ones too, unless the priorities together can still take everything. Draining hosts
 * are left out of the sum, so one of two may be drained, but not both: then nothing is left to compare with, and that is a
 * panic. A priority without a healthy host gets no requests as long as another one has some, unless all of them panic:
 * then each gets requests by the number of its hosts. Envoy 1.39.3, 1.40.0.
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

/** The sums of one priority, of hosts or of their weights. Excluded hosts are in no other number. */
interface Sums {
  total: number
  healthy: number
  degraded: number
  excluded: number
}

/** One priority of a cluster. */
export interface Level {
  readonly hosts: Sums
  readonly weights: Sums
}

/** The priorities of a cluster, or of all clusters of an aggregate in their order. */
export type Levels<K = number> = ReadonlyMap<K, Level>

/** @param plain - healthy hosts beside the others, by priority */
export function levelsOf(
  hosts: Iterable<PanicHost>,
  plain: ReadonlyMap<number, { readonly count: number }> = new Map<number, { count: number }>(),
): Map<number, Level> {
  const levels = new Map<number, Level>()
  const at = (priority: number): Level => {
    let level = levels.get(priority)
    if (level === undefined) levels.set(priority, (level = { hosts: none(), weights: none() }))
    return level
  }
  for (const host of hosts) {
    const level = at(host.priority)
    add(level.hosts, host, 1)
    add(level.weights, host, host.weight)
  }
  const well = { healthy: true, degraded: false, excluded: false }
  for (const [priority, { count }] of plain) {
    const level = at(priority)
    add(level.hosts, well, count)
    add(level.weights, well, count)
  }
  return levels
}

/**
 * The level with some draining hosts counted as not healthy, and fewer healthy ones: as Envoy's own gauges have it.
 *
 * @param included - draining hosts that are not left out of the sum
 * @param ill - healthy hosts that Envoy does not count as such
 */
export function recounted({ hosts, weights }: Level, included: number, ill: number): Level {
  const excluded = Math.max(0, Math.min(included, hosts.excluded))
  const healthy = Math.max(0, hosts.healthy - Math.max(0, ill))
  const part = hosts.healthy === 0 ? 0 : healthy / hosts.healthy
  return {
    hosts: { ...hosts, total: hosts.total + excluded, healthy },
    weights: { ...weights, total: weights.total + excluded, healthy: weights.healthy * part },
  }
}

/** What becomes of requests. */
export interface Balance<K> {
  /** Priorities that use all their hosts for the requests that they get. */
  readonly panicked: ReadonlySet<K>
  /** Priorities that get requests. */
  readonly loaded: ReadonlySet<K>
}

export function balanceOf<K>(levels: Levels<K>, rules: PanicRules): Balance<K> {
  const keys = [...levels.keys()]
  const known = new Map([...levels].map(([key, level]) => [key, availabilityOf(level, rules)]))
  const loaded = new Set(keys.filter((key) => (known.get(key) ?? 0) > 0))
  if (rules.threshold === 0 || rules.failOnPanic) return { panicked: new Set(), loaded }
  const availability = [...known.values()].reduce((sum, share) => sum + share, 0)
  const isPanicked = ({ hosts: { healthy, degraded, total } }: Level): boolean =>
    availability < 100 &&
    (availability === 0 || share(healthy + degraded, total, 100) < rules.threshold)
  const panicked = new Set([...levels].flatMap(([key, level]) => (isPanicked(level) ? [key] : [])))
  return { panicked, loaded: panicked.size === keys.length ? new Set(keys) : loaded }
}

/** Whole percents, as Envoy counts: three thirds are 99 %, and that is not everything. */
function availabilityOf({ hosts, weights }: Level, rules: PanicRules): number {
  const { healthy, degraded, total } = rules.isWeighted ? weights : hosts
  const percent = (part: number): number => Math.floor(share(part, total, rules.overprovisioning))
  return percent(healthy) + percent(degraded)
}

function none(): Sums {
  return { total: 0, healthy: 0, degraded: 0, excluded: 0 }
}

function add(sums: Sums, host: Omit<PanicHost, 'priority' | 'weight'>, count: number): void {
  if (host.excluded) {
    sums.excluded += count
    return
  }
  sums.total += count
  if (host.healthy) sums[host.degraded ? 'degraded' : 'healthy'] += count
}

function share(part: number, total: number, factor: number): number {
  return total === 0 ? 0 : Math.min(100, (part * factor) / total)
}
