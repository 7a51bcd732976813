import type { LoadScope, Snapshot } from '../../../provider/contract.js'
import { parentLoad, parentScope } from '../../../kit/envoy/parent.js'
import type { ProxyView } from '../session/roster.js'

/** Stands for whoever will serve the cluster, until a proxy lists it. */
export const NO_PROXY = 'a proxy'

/**
 * The process before a hot restart, as its child tells: no counts by endpoint, so all that it holds for the cluster stands for
 * the member.
 */
export function previousLoad(view: ProxyView, now: number): LoadScope | undefined {
  const { previous, role, scope } = view
  if (role !== 'previous') return undefined
  const note = view.note === undefined ? {} : { note: view.note }
  const known = { scope, incarnation: previous?.incarnation ?? 'unknown', ...note }
  if (view.state === 'ended') {
    return { ...blank(scope, now, known.incarnation), state: 'ended', old: true, ...note }
  }
  if (view.state === 'unread' || previous === undefined)
    return parentLoad({ ...known, sampledAt: now }, undefined, true)
  const { sampledAt, active, state } = previous
  return parentLoad({ ...known, sampledAt }, active, state === 'alive')
}

/** A scope of which nothing is known. */
export function blank(scope: string, sampledAt: number, incarnation = 'unknown'): LoadScope {
  return {
    scope,
    incarnation,
    state: 'unread',
    sampledAt,
    active: 0,
    queued: 0,
  }
}

/** What the caller's list of proxies, and the sink, say of who there is. */
export interface Listing {
  /** Whether the admin addresses are given. */
  readonly hasAdmin: boolean
  /** Whether every proxy that takes sets from here has had the time to come back, where any does. */
  readonly isComplete: boolean
}

/**
 * Which processes have ended. Where the caller's list is all there is, and every proxy on it could be read,
 * those that are not on it have: a ticket may know proxies that were replaced between two looks.
 */
export function endedOf(
  views: readonly ProxyView[],
  { hasAdmin, isComplete }: Listing,
): NonNullable<Snapshot['ended']> {
  const alive = views.filter(({ state }) => state !== 'ended')
  const isWhole =
    hasAdmin && isComplete && alive.length > 0 && alive.every((view) => view.state === 'read')
  // A reading that still lists it has none: the place ends once a proxy fills it.
  return isWhole ? 'unlisted' : [NO_PROXY, ...withoutPrevious(views)]
}

/** Proxies that answer and have no process before them, by what that one would go by: a ticket may know it. */
function withoutPrevious(views: readonly ProxyView[]): string[] {
  const alive = new Set(views.flatMap(({ role, scope }) => (role === 'previous' ? [scope] : [])))
  return views
    .filter(({ role, state, proxy }) => role === 'proxy' && state === 'read' && proxy !== undefined)
    .map(({ scope }) => parentScope(scope))
    .filter((scope) => !alive.has(scope))
}
