import { RecentMap } from '../../../kit/recent-map.js'
import type { ClusterRows } from '../codec/admin.js'
import { hiddenGone, type Gone } from '../session/gone-clusters.js'
import type { ProxyView } from '../session/roster.js'
import { goneOf } from './hosts.js'
import type { Wanted } from './wanted.js'

/** What a drained member may still have in one process beside what its rows say. */
export interface Leftover {
  /** At most so many requests. */
  readonly count: number
  /** Why they can't be counted: then nothing is known of the member there. */
  readonly unknown: boolean
  /** More may come for a moment. */
  readonly isOpen: boolean
  readonly note: string | undefined
}

const NONE: Leftover = { count: 0, unknown: false, isOpen: false, note: undefined }

interface Known {
  readonly incarnation: string
  /** What its rows had begun at the last look. */
  begun: number
  /** It was seen drained and without work: nothing of it can be left on objects that go later. */
  isClear: boolean
  isUnknown: boolean
}

/**
 * Work of drained members on host objects that are listed no more: those of a cluster that CDS changed, and of an endpoint
 * that left its set and came back.
 */
export class Leftovers {
  readonly #known: RecentMap<string, Known>

  /** @param now - monotonic */
  constructor(now: () => number) {
    this.#known = new RecentMap(now)
  }

  /** @param begun - all that the rows of the member have begun */
  of(
    view: ProxyView,
    clusters: readonly ClusterRows[],
    { service, member }: Pick<Wanted, 'service' | 'member'>,
    begun: number,
  ): Leftover {
    const known = this.#of(view, service, member)
    const { reading, tracker } = view
    if (known === undefined || reading === undefined) return NONE
    const isFallen = begun < known.begun
    known.begun = begun
    // What the process before a hot restart holds is in the same gauge, and has a scope of its own.
    if (known.isClear || reading.previous?.state === 'alive') return NONE
    const hidden = clusters.find(({ cluster }) => tracker.unlisted(cluster) === undefined)
    if (hidden !== undefined) {
      known.isUnknown ||= isFallen
      if (!known.isUnknown) return NONE
      const note = `cluster ${hidden.cluster} was changed while it may have had work, and /stats does not tell cluster.${hidden.cluster}.upstream_rq_* and upstream_cx_*: what is left is not known`
      return { ...NONE, unknown: true, note }
    }
    return this.#bounded(view, clusters, goneOf(view, service))
  }

  #bounded({ scope, tracker }: ProxyView, clusters: readonly ClusterRows[], gone: Gone): Leftover {
    if (gone.count === undefined) return { ...NONE, unknown: true, note: hiddenGone(gone) }
    const left = (cluster: string): number => tracker.unlisted(cluster)?.most ?? 0
    const count = clusters.reduce((sum, { cluster }) => sum + left(cluster), gone.count)
    if (count === 0 && !gone.isFresh) return NONE
    if (count === 0) {
      const note = `cluster ${gone.clusters.join(', ')} was removed there a moment ago, and a worker may still send to it`
      return { ...NONE, isOpen: true, note }
    }
    const busy = clusters.map(({ cluster }) => cluster).filter((cluster) => left(cluster) > 0)
    const names = [...busy, ...gone.clusters].join(', ')
    const note = `up to ${count} requests of cluster ${names} are on no listed endpoint of ${scope}: the cluster was changed or removed, or an endpoint left its set and came back, while they ran`
    return { count, unknown: false, isOpen: gone.isFresh, note }
  }

  /** Remembers what a look came to. @param isClear - drained, in force, and nothing left */
  saw(
    view: ProxyView,
    { service, member }: Pick<Wanted, 'service' | 'member'>,
    { isDrained, isClear }: { readonly isDrained: boolean; readonly isClear: boolean },
  ): void {
    const known = this.#of(view, service, member)
    if (known === undefined) return
    const isAlone = view.reading?.previous?.state !== 'alive'
    if (isClear && isAlone) known.isClear = true
    else if (!isDrained) known.isClear = false
  }

  #of({ scope, reading }: ProxyView, service: string, member: string): Known | undefined {
    if (reading === undefined) return undefined
    const key = JSON.stringify([scope, service, member])
    let known = this.#known.get(key)
    if (known?.incarnation !== reading.incarnation) {
      const { incarnation } = reading
      known = { incarnation, begun: 0, isClear: false, isUnknown: false }
      this.#known.set(key, known)
    }
    return known
  }
}
