import { isDeepStrictEqual } from 'node:util'
import type { PlannedChange } from '../provider/desired.js'
import type { WishedPlan } from '../endpoints/plan-changes.js'
import { wallOf, type Clock } from '../provider/clock.js'
import { refKey } from '../provider/member-ref.js'
import type { Backoff } from './backoff.js'
import type { MemberDrain } from './member-drain.js'
import type { Singles } from './singles.js'

/** Something of a member that failed, or waits. */
interface Waiting {
  readonly held: string | null
  readonly backoff: Backoff
}

/** When something that failed or waits is due again; Infinity for nothing. */
export function dueOf(
  all: readonly (readonly [string, Waiting])[],
  singles: Pick<Singles, 'lateUntil'>,
  now: number,
): number {
  let due = Infinity
  for (const [key, { held, backoff }] of all) {
    if (held === null) continue
    const at = singles.lateUntil(key) ?? backoff.notBefore
    if (at > now && at < due) due = at
  }
  return due
}

/** Opened now, it would get work that a removal which is still under way cuts. */
export function saidOfLate(clock: Clock, at: number): string {
  const until = new Date(wallOf(clock) + at - clock.now()).toISOString()
  return `it should serve, but a removal without an answer may still be carried out until ${until}: it is made ready after that`
}

/** What is under way for members, or waits. */
interface UnderWay {
  readonly drains: ReadonlyMap<string, MemberDrain>
  readonly singles: Pick<Singles, 'all' | 'lateUntil'>
  readonly refused: ReadonlyMap<string, string>
}

/**
 * Whether a planned change is still to be begun, or is tried again by the next look. What waits for longer, or is left
 * alone, is as settled as it can be: it says why.
 */
export function isOpen(
  { change }: PlannedChange,
  { drains, singles, refused }: UnderWay,
  { down }: WishedPlan,
  now: number,
): boolean {
  const key = refKey(change.ref)
  const single = singles.all.get(key)
  // What failed may have been of an earlier set: with another address, say.
  if (single !== undefined)
    return single.backoff.notBefore <= now || !isDeepStrictEqual(single.change, change)
  const drain = drains.get(key)
  if (drain === undefined || drain.held === null) return !refused.has(key)
  if (drain.leftFor !== null || drain.isRefused || singles.lateUntil(key) !== undefined)
    return false
  if (drain.state === 'failed') return drain.backoff.notBefore <= now
  // Its time is over, and the next look has it taken out.
  const isToGo = down.some(({ reading, remove }) => remove && refKey(reading.ref) === key)
  return isToGo && drain.shape.until === 'idle'
}
