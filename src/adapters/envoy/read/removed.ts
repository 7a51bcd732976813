import type { LoadScope } from '../../../provider/contract.js'
import type { ProxyView } from '../session/roster.js'
import { rowsOf } from './hosts.js'
import type { Held } from './holdings.js'
import { hiddenWords, leftIn, NONE } from './left.js'
import { blank, previousLoad } from './scope.js'

/** A member that a proxy does not list, and that proxy. */
interface Place {
  readonly view: ProxyView
  readonly service: string
  readonly member: string
  /** By the clock that samples are told in. */
  readonly now: number
}

/** Whether a proxy has the cluster, and the member no more, or never had it. */
export function isRemovedThere(view: ProxyView, service: string, member: string): boolean {
  const clusters = rowsOf(view, service)
  return clusters.length > 0 && clusters.every(({ hosts }) => !hosts.has(member))
}

/**
 * A proxy of a foreign control plane that has the cluster and not the member: it was removed there first, or was never
 * there. Nothing new comes to it; where it was not seen drained there, all that no listed endpoint accounts for may be
 * its own.
 */
export function removedScope(place: Place, last: Held | undefined): LoadScope {
  const scope = leftScope(place, last?.work ?? Infinity)
  // As it was: what came since it was removed is in no count, and nothing can come.
  return { ...scope, arrivals: last?.arrivals ?? 0 }
}

/** What is left of a member that is gone everywhere. */
export function goneScope(
  place: Place,
  last: Held | undefined,
  isForeign: boolean,
): readonly LoadScope[] {
  const { view, now } = place
  const was = last?.work ?? (isForeign ? Infinity : undefined)
  if (was === undefined) return []
  const previous = previousLoad(view, now)
  if (previous !== undefined) return [previous]
  if (view.state === 'ended') return [{ ...blank(view.scope, now), state: 'ended' }]
  if (view.reading === undefined) {
    return [{ ...blank(view.scope, now), note: view.note ?? 'not read' }]
  }
  return [leftScope(place, was)]
}

/** What hosts that are not listed hold of a cluster, and no more than the member held. */
function leftScope({ view, service, member, now }: Place, was: number): LoadScope {
  const { scope, reading } = view
  const unread = (note: string): LoadScope => ({
    ...blank(scope, now, reading?.incarnation),
    note,
  })
  if (reading === undefined) return unread(view.note ?? 'not read')
  // A worker that has not taken the removal sends to it still; one that was drained there gets nothing from any.
  const { still } = reading.tracker
  if (was !== 0 && still !== undefined) return unread(still)
  const clusters = rowsOf(view, service)
  const rows = clusters.flatMap(({ hosts }) => hosts.get(member) ?? [])
  const without = clusters.filter(({ hosts }) => !hosts.has(member))
  const left = was === 0 ? NONE : leftIn(view, service, without)
  if (left.hidden !== undefined) return unread(hiddenWords(left.hidden))
  const listed = rows.reduce((sum, row) => sum + row.active + (row.pending ?? 0), 0)
  const active = Math.min(was, left.most + listed)
  if (active > 0 && !left.isExact) {
    return unread(
      `up to ${active} requests of the removed endpoint may be left, the traffic of the others comes and goes too fast to tell`,
    )
  }
  return {
    scope,
    incarnation: reading.incarnation,
    state: 'read',
    sampledAt: reading.sampledAt,
    active,
    queued: 0,
    inForce: !left.isFresh && rows.length === 0,
  }
}
