import type { LoadScope } from '../../../provider/contract.js'
import { RecentMap } from '../../../kit/recent-map.js'
import type { Wanted } from '../session/proxy.js'
import type { ProxyView } from '../session/roster.js'

/** What a member held in one process at the last look. */
export interface Held {
  readonly incarnation: string | undefined
  /** No more can be left of it there once it is listed no more. */
  readonly work: number
  /** All that its rows had begun; undefined: they were not read. */
  readonly arrivals: number | undefined
  /** It was seen drained and without work: nothing of it can be left on objects that go later. */
  readonly isClear: boolean
  /** Its rows began anew since it is drained. */
  readonly isFallen: boolean
}

/** How a look at a member in one process came out. */
export interface Outcome {
  readonly isDraining: boolean
  /** Another control plane owns the set: it may remove what was never drained. */
  readonly isForeign: boolean
  /** It is not listed there, and removed by that control plane. */
  readonly isRemoved: boolean
  readonly isFallen: boolean
}

/**
 * What members held, by process: Envoy forgets a host that it lists no more, and what is left is known for the whole cluster
 * alone.
 */
export class Holdings {
  readonly #known: RecentMap<string, Held>

  /** @param now - monotonic */
  constructor(now: () => number) {
    this.#known = new RecentMap(now)
  }

  /** Undefined: it was not looked at there. */
  of({ scope, reading }: ProxyView, { service, member }: Omit<Wanted, 'ref'>): Held | undefined {
    const held = this.#known.get(JSON.stringify([scope, service, member]))
    const isSame = reading === undefined || held?.incarnation === reading.incarnation
    if (held === undefined || isSame) return held
    const { incarnation } = reading
    return { incarnation, work: held.work, arrivals: undefined, isClear: false, isFallen: false }
  }

  /** Remembers what a look came to. */
  saw(
    view: ProxyView,
    { service, member }: Omit<Wanted, 'ref'>,
    scope: LoadScope,
    outcome: Outcome,
  ): void {
    const held = this.of(view, { service, member })
    // It was never seen there: there is no bound to what is left of it, if it ever was there.
    if (outcome.isRemoved && held === undefined) return
    const before = held ?? { work: Infinity, arrivals: undefined, isClear: false, isFallen: false }
    const incarnation = view.reading?.incarnation ?? held?.incarnation
    const { isFallen } = outcome
    const isRead = scope.state !== 'unread'
    const now = isRead ? heldAfter(before, view, scope, outcome) : { ...before, isFallen }
    this.#known.set(JSON.stringify([view.scope, service, member]), { ...now, incarnation })
  }
}

function heldAfter(
  before: Omit<Held, 'incarnation'>,
  { reading }: ProxyView,
  { active, queued, arrivals, inForce }: LoadScope,
  { isDraining, isForeign, isRemoved, isFallen }: Outcome,
): Omit<Held, 'incarnation'> {
  if (isRemoved) return { ...before, work: Math.min(before.work, active), arrivals }
  const isDrained = isDraining && inForce === true
  // What the process before a hot restart holds is in the same gauges, and has a scope of its own.
  const isAlone = reading?.previous?.state !== 'alive'
  const isEmpty = isDrained && active + queued === 0 && isAlone
  // Work may come to one that is not drained after this look, and before its removal.
  const isOpen = isForeign && !(isDraining && inForce !== false)
  return {
    work: isOpen ? Infinity : active,
    arrivals,
    isClear: isEmpty || (isDrained && before.isClear),
    isFallen,
  }
}
