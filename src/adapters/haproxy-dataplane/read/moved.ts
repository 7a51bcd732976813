import { isAtLeast, parseVersion } from '../../../kit/version.js'
import type { MemberRef } from '../../../provider/contract.js'
import type { Configured } from './configured.js'
import { identify } from './reading.js'
import type { RuntimeView } from './read.js'

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
