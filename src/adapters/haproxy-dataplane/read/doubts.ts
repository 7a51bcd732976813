import { isAtLeast, parseVersion } from '../../../kit/version.js'
import type { MemberRef } from '../../../provider/contract.js'
import { formatDuration } from '../../../provider/duration.js'
import { refKey } from '../../../provider/member-ref.js'
import type { Configured } from './configured.js'
import type { RuntimeView } from './read.js'
import { identify } from './reading.js'

/**
 * Whether work at a server's address may stand in the row of another server. If a server gets another address (by DNS,
 * or from a client), its requests stay at the address of before, and in its row; another server of the backend can get
 * that address meanwhile. Only HAProxy's list of streams tells, which this API does not have (measured on the Runtime
 * API of 2.6 to 3.4).
 */
export class MovedAddresses {
  /** The address of each server, by backend. */
  readonly #known = new Map<string, ReadonlyMap<string, string>>()
  /** Backends in which a server was seen to lose its address. */
  readonly #moved = new Set<string>()

  /** Takes in a look at whole backends. */
  note({ pools }: RuntimeView): void {
    for (const [pool, members] of pools) {
      const before = this.#known.get(pool)
      const now = new Map([...members].map(([name, found]) => [name, identify(found).identity]))
      const moved = [...now].some(([name, at]) => (before?.get(name) ?? at) !== at)
      if (moved) this.#moved.add(pool)
      this.#known.set(pool, now)
    }
  }

  /** Why the counts of a server may not be all that its machine works on; undefined if they are. */
  why(
    { pool, member }: MemberRef,
    config: Configured | undefined,
    view: RuntimeView,
  ): string | undefined {
    const { named } = config ?? { named: 'unknown' }
    if (named === false && !this.#moved.has(pool)) return undefined
    const others = [...(view.pools.get(pool) ?? [])].filter(([name]) => name !== member)
    const busy = others.some(([, { row }]) => row.scur + row.qcur > 0)
    const reuses = others.length > 0 && isReusing(view.info.version)
    if (!busy && !reuses) return undefined
    const because =
      named === true
        ? 'its address comes from DNS'
        : this.#moved.has(pool)
          ? 'a server of its backend was seen to change its address'
          : "HAProxy's configuration can't be read, so its address may come from DNS"
    return reuses
      ? `${because}: HAProxy before 3.0 goes on sending requests over a server's connections to its address of before, and another server of ${pool} can have had this address; 3.0 and later close them`
      : `${because}, and other servers are at work: requests of before can be at its address and stand in the row of a server that had it; the option runtime counts them`
  }
}

/** Whether a server's connections to its address of before stay in use (measured on 2.6, not on 3.0 to 3.4). */
function isReusing(text: string): boolean {
  const version = parseVersion(text)
  return version !== undefined && !isAtLeast(version, 3, 0)
}

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
