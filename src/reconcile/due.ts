import { isDeepStrictEqual } from 'node:util'
import type { PlannedChange } from '../provider/desired.js'
import { refKey } from '../provider/member-ref.js'
import type { Adds } from './adds.js'
import type { Backoff } from './backoff.js'
import type { MemberDrain } from './member-drain.js'

/** Something of a member that failed, or waits. */
interface Waiting {
  readonly held: string | null
  readonly backoff: Backoff
}

/** When something that failed is due again; Infinity for nothing. */
export function dueOf(all: Iterable<Waiting>, now: number): number {
  let due = Infinity
  for (const { held, backoff } of all)
    if (held !== null && backoff.notBefore > now) due = Math.min(due, backoff.notBefore)
  return due
}

/** What is under way for members, or waits. */
interface UnderWay {
  readonly drains: ReadonlyMap<string, MemberDrain>
  readonly adds: Pick<Adds, 'all'>
  readonly refused: ReadonlyMap<string, string>
}

/**
 * Whether a planned change is still to be begun, or is tried again by the next look. What waits for longer, or is left
 * alone, is as settled as it can be: it says why.
 */
export function isOpen(
  { change }: PlannedChange,
  { drains, adds, refused }: UnderWay,
  now: number,
): boolean {
  const key = refKey(change.ref)
  const adding = adds.all.get(key)
  // What failed may have been of an earlier set: with another address, say.
  if (adding !== undefined)
    return adding.backoff.notBefore <= now || !isDeepStrictEqual(adding.change, change)
  const drain = drains.get(key)
  if (drain === undefined || drain.held === null) return !refused.has(key)
  if (drain.leftFor !== null || drain.isRefused) return false
  return drain.isTried && drain.backoff.notBefore <= now
}
