import type { Group, Stats } from './stats.js'

/**
 * Listeners inside of an Envoy (`internal_listener`, Istio ambient): its own listeners connect to them, and keep these
 * connections without work. What comes from clients is seen at the listener that they are connected to.
 */
export interface Inner {
  /** What their statistics go by. */
  readonly listeners: ReadonlySet<string>
  /** HTTP connection managers of theirs that no other listener has. */
  readonly http: ReadonlySet<string>
  /** Those that other listeners have too. */
  readonly shared: ReadonlySet<string>
  /** What the statistics of the other listeners go by. */
  readonly outer: ReadonlySet<string>
}

/** What the statistics of an inner listener without `stat_prefix` begin with. Envoy 1.39.3, 1.40.0. */
export const INNER = 'envoy_internal_'
const CONNECTIONS = ['downstream_cx_active', 'downstream_cx_total'] as const

/** Statistics of clients alone. Connections of a manager that both have are those of inner ones as far as they may be. */
export function withoutInner(stats: Stats, inner: Inner): Stats {
  const isInner = (name: string): boolean =>
    inner.listeners.has(name) || (name.startsWith(INNER) && !inner.outer.has(name))
  const [innerListeners, listeners] = divide(stats.listeners, isInner)
  const [innerHttp, http] = divide(stats.http, (name) => inner.http.has(name))
  for (const key of CONNECTIONS) {
    const isShown = [...inner.listeners].every((name) => innerListeners.get(name)?.has(key))
    let left = isShown ? sum(innerListeners, key) - sum(innerHttp, key) : Infinity
    for (const name of inner.shared) {
      const group = http.get(name)
      const count = group?.get(key)
      if (group === undefined || count === undefined) continue
      const taken = Math.max(0, Math.min(count, left))
      left -= taken
      http.set(name, new Map([...group, [key, count - taken]]))
    }
  }
  return { ...stats, http, listeners }
}

function divide(
  groups: ReadonlyMap<string, Group>,
  isFirst: (name: string) => boolean,
): readonly [Map<string, Group>, Map<string, Group>] {
  const all = [...groups]
  return [
    new Map(all.filter(([name]) => isFirst(name))),
    new Map(all.filter(([name]) => !isFirst(name))),
  ]
}

function sum(groups: ReadonlyMap<string, Group>, key: string): number {
  return [...groups.values()].reduce((total, group) => total + (group.get(key) ?? 0), 0)
}
