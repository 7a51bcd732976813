import type { LoadScope } from '../../../provider/contract.js'
import type { ProxyView } from '../session/roster.js'
import { rowsOf } from './hosts.js'

/** What a member held at the last look, by scope: no more than that can be left of it once it is removed. */
export type Bounds = ReadonlyMap<string, number>

interface Look {
  readonly views: readonly ProxyView[]
  readonly service: string
  readonly member: string
  /** Nothing new came to it at that look in the scopes that say in force. */
  readonly isDraining: boolean
  readonly before: Bounds | undefined
}

/**
 * What is to be remembered of a look at a member. A control plane that is not ours may remove an endpoint that was never
 * drained: then work may have come to it after the last look, and its number is no bound.
 */
export function boundsOf(
  scopes: readonly LoadScope[],
  isForeign: boolean,
  { views, service, member, isDraining, before }: Look,
): Bounds {
  const bounds = new Map<string, number>()
  for (const { scope, state, active, inForce } of scopes) {
    const last = before?.get(scope)
    const view = views.find((one) => one.scope === scope && one.role !== 'previous')
    const isRemoved = isForeign && view !== undefined && isRemovedThere(view, service, member)
    // It was never seen there: there is no bound to what is left of it, if it ever was there.
    if (isRemoved && last === undefined) continue
    if (state === 'unread') bounds.set(scope, last ?? Infinity)
    else if (isRemoved) bounds.set(scope, Math.min(last ?? Infinity, active))
    else bounds.set(scope, isForeign && !(isDraining && inForce !== false) ? Infinity : active)
  }
  return bounds
}

/** Whether a proxy has the cluster, and the member no more, or never had it. */
export function isRemovedThere(view: ProxyView, service: string, member: string): boolean {
  const clusters = rowsOf(view, service)
  return clusters.length > 0 && clusters.every(({ hosts }) => !hosts.has(member))
}

/** For a member that is gone everywhere: where it was never seen, there is no bound to what may be left of it. */
export function unboundedBy(last: Bounds, views: readonly ProxyView[]): Bounds {
  return new Map(views.map(({ scope }) => [scope, last.get(scope) ?? Infinity]))
}
