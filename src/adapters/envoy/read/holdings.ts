import type { LoadScope } from '../../../provider/contract.js'
import type { ProxyView } from '../session/roster.js'

/** What a member held in one process at the last look. */
export interface Held {
  readonly incarnation: string | undefined
  /** No more can be left of it there once it is listed no more. */
  readonly work: number
  /** All that its rows had begun; undefined: they were not read. */
  readonly arrivals: number | undefined
  /** What its rows had begun at the last look that found it drained. */
  readonly begun: number
  /** It was seen drained and without work: nothing of it can be left on objects that go later. */
  readonly isClear: boolean
  /** Its rows began anew since it is drained. */
  readonly isFallen: boolean
}

const UNSEEN: Omit<Held, 'incarnation'> = {
  work: Infinity,
  arrivals: undefined,
  begun: 0,
  isClear: false,
  isFallen: false,
}

/** How a look at a member in one process came out. */
export interface Outcome {
  /** What its rows had begun at the newest look that found it drained, this one too. */
  readonly begun: number
  readonly isDraining: boolean
  /** Another control plane owns the set: it may remove what was never drained. */
  readonly isForeign: boolean
  /** It is not listed there, and removed by that control plane. */
  readonly isRemoved: boolean
  readonly isFallen: boolean
}

/**
 * What a member held, by process: Envoy forgets a host that it lists no more, and what is left is known for the whole cluster
 * alone.
 */
export type Holdings = ReadonlyMap<string, Held>

/** Undefined: it was not looked at there. */
export function heldIn(
  held: Holdings | undefined,
  { scope, reading }: ProxyView,
): Held | undefined {
  const last = held?.get(scope)
  const isSame = reading === undefined || last?.incarnation === reading.incarnation
  if (last === undefined || isSame) return last
  const { incarnation } = reading
  return { ...UNSEEN, incarnation, work: last.work }
}

/** What is to be remembered of a look; undefined: nothing. */
export function heldAfter(
  last: Held | undefined,
  { reading }: ProxyView,
  { state, active, queued, arrivals, inForce }: LoadScope,
  { begun, isDraining, isForeign, isRemoved, isFallen }: Outcome,
): Held | undefined {
  // It was never seen there: there is no bound to what is left of it, if it ever was there.
  if (isRemoved && last === undefined) return undefined
  const incarnation = reading?.incarnation ?? last?.incarnation
  const before = { ...(last ?? UNSEEN), begun }
  if (state !== 'read') return { ...before, incarnation, isFallen }
  if (isRemoved)
    return { ...before, incarnation, work: Math.min(before.work, active), arrivals, isFallen }
  const isDrained = isDraining && inForce === true
  // What the process before a hot restart holds is in the same gauges, and has a scope of its own.
  const isAlone = reading?.previous?.state !== 'alive'
  const isEmpty = isDrained && active + queued === 0 && isAlone
  // Work may come to one that is not drained after this look, and before its removal.
  const isOpen = isForeign && !(isDraining && inForce !== false)
  return {
    incarnation,
    work: isOpen ? Infinity : active,
    arrivals,
    begun,
    isClear: isEmpty || (isDrained && before.isClear),
    isFallen,
  }
}
