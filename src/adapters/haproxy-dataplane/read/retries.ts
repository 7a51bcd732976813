import { formatDuration } from '../../../provider/duration.js'
import type { MemberRef } from '../../../provider/contract.js'
import { refKey } from '../../../provider/member-ref.js'
import type { RuntimeView } from './read.js'

/**
 * For so long after a connection to a server was tried again idle is not verified, ms. The retry waits a second, and
 * then for its thread: up to 5.8 s were seen (2.6, 3.0, 3.2, 3.4), and no bound is known.
 */
const DOUBT = 30_000

/**
 * Whether a request may wait for its retry and be in no count. Its thread of HAProxy can be late, and only the list of
 * streams shows the request until that runs, which this API does not have.
 */
export class Retries {
  /** `wretr` of each server, and when it was seen to grow last. */
  readonly #known = new Map<string, { readonly count: number; readonly grewAt: number }>()

  /** Takes in a look. */
  note({ pools }: RuntimeView, now: number): void {
    for (const [pool, members] of pools)
      for (const [member, { row }] of members) {
        const count = row.retries
        const key = refKey({ pool, member })
        const { count: before, grewAt } = this.#known.get(key) ?? { count, grewAt: -Infinity }
        // A count that fell began anew, with a process or by 'clear counters': it can have grown since.
        const grew = count > before || (count < before && count > 0)
        this.#known.set(key, { count, grewAt: grew ? now : grewAt })
      }
  }

  /** Why idle is not verified; undefined if no connection was tried again of late. */
  why({ pool, member }: MemberRef, now: number): string | undefined {
    const ago = now - (this.#known.get(refKey({ pool, member }))?.grewAt ?? -Infinity)
    if (ago >= DOUBT) return undefined
    return `a connection to it was tried again ${formatDuration(ago)} ago: a request that waits for its retry is in no count, and can come seconds later where HAProxy's threads are late; the option runtime sees it`
  }
}
