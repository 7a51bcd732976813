import { wallOf, type Clock } from '../provider/clock.js'
import type { Backoff } from './backoff.js'
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
