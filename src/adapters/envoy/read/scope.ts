import type { LoadScope } from '../../../provider/contract.js'
import type { ProxyView } from '../session/roster.js'

/**
 * The process before a hot restart, as its child tells: no counts by endpoint, so all that it holds for
 * the cluster stands for the member. It is in force once no client can come to it any more.
 */
export function previousLoad(view: ProxyView, now: number): LoadScope | undefined {
  const { previous, role, scope } = view
  if (role !== 'previous') return undefined
  const note = view.note === undefined ? {} : { note: view.note }
  if (view.state !== 'read' || previous === undefined) {
    const state = view.state === 'ended' ? 'ended' : 'unread'
    return { ...blank(scope, now, previous?.incarnation), state, old: true, ...note }
  }
  const isOpen = previous.state === 'alive'
  return {
    scope,
    incarnation: previous.incarnation,
    state: 'read',
    sampledAt: previous.sampledAt,
    active: previous.active ?? 0,
    queued: 0,
    arrivals: 0,
    old: true,
    inForce: !isOpen,
    open: isOpen,
    ...note,
  }
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
