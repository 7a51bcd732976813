import type { Change, MemberRef } from '../../provider/contract.js'
import { formatRef, refKey } from '../../provider/member-ref.js'
import { refusal } from '../errors.js'

/** A server that takes its state from another one. */
export interface Tracking {
  readonly pool: string
  readonly member: string
  /** `backend/server` that it follows; empty if none. */
  readonly tracked: string
}

/**
 * Which servers of a HAProxy track which: a drained server also drains its followers, and theirs. Only the follower's
 * row tells it, so the rows of all backends are needed.
 */
export class Followers {
  #processes = ''
  #byLeader: ReadonlyMap<string, readonly MemberRef[]> = new Map()

  /** Whether the rows of these processes were read last. */
  know(processes: string): boolean {
    return this.#processes === processes
  }

  /** Takes in the rows of all backends. */
  learn(processes: string, rows: Iterable<Tracking>): void {
    const byLeader = new Map<string, MemberRef[]>()
    for (const { pool, member, tracked } of rows) {
      const slash = tracked.lastIndexOf('/')
      if (slash < 1) continue
      const key = refKey({ pool: tracked.slice(0, slash), member: tracked.slice(slash + 1) })
      byLeader.set(key, [...(byLeader.get(key) ?? []), { pool, member }])
    }
    this.#processes = processes
    this.#byLeader = byLeader
  }

  /** The followers of a server, direct or along a chain; none if no rows were read. */
  of({ pool, member }: MemberRef): readonly MemberRef[] {
    const found = new Map<string, MemberRef>()
    const open = [{ pool, member }]
    for (let ref = open.pop(); ref !== undefined; ref = open.pop()) {
      for (const follower of this.#byLeader.get(refKey(ref)) ?? []) {
        if (found.has(refKey(follower))) continue
        found.set(refKey(follower), follower)
        open.push(follower)
      }
    }
    return [...found.values()]
  }
}

/** What a person should know of followers before a server is drained: once it is, they are no reason to wait. */
export function takenAlong(followers: readonly MemberRef[]): readonly string[] {
  if (followers.length === 0) return []
  const names = followers.map(({ pool, member }) => `${pool}/${member}`).join(', ')
  const take = followers.length === 1 ? 'tracks it and takes' : 'track it and take'
  return [`${names} ${take} its state too`]
}

/** What a backend of followers has now, and would lose. */
interface Serving {
  readonly serving: number
  readonly lost: number
}

/**
 * Checks what is left of the backends of a server's followers, which are drained along with it.
 *
 * @param by - the factory and the provider in whose words, and how many must stay (its option `keepFollowers`)
 * @throws `POOL_AT_MINIMUM` if too few would be left
 */
export function keepServing(
  ref: MemberRef,
  followers: readonly MemberRef[],
  by: { readonly factory: string; readonly provider: string; readonly least: number },
  servingOf: (pool: string) => Serving,
): void {
  const names = followers.map(({ pool, member }) => `${pool}/${member}`).join(', ')
  const track = followers.length === 1 ? 'tracks' : 'track'
  for (const pool of new Set(followers.map((follower) => follower.pool))) {
    const { serving, lost } = servingOf(pool)
    if (lost === 0 || serving - lost >= by.least) continue
    throw refusal(
      'POOL_AT_MINIMUM',
      `${formatRef(ref)} was not drained: ${names} ${track} it and would go along, which leaves ${Math.max(0, serving - lost)} serving in ${pool}; the option keepFollowers of ${by.factory}() is ${by.least}`,
      { provider: by.provider, ref },
    )
  }
}

/**
 * The places of changes in the order in which they are made: a server that tracks another one is drained
 * before that, because behind an inherited drain its own can't be seen, and set back after it.
 */
export function orderOf(changes: readonly Change[], followers: Followers): readonly number[] {
  const leads = new Map(changes.map(({ ref }) => [refKey(ref), keysOf(followers.of(ref))]))
  const isBefore = (one: Change, other: Change): boolean => {
    const [first, second] = other.kind === 'restore' ? [other, one] : [one, other]
    return leads.get(refKey(second.ref))?.has(refKey(first.ref)) === true
  }
  const order: number[] = []
  for (const [i, change] of changes.entries()) {
    const key = refKey(change.ref)
    const own = order.findLastIndex((k) => refKey(changes[k]?.ref ?? change.ref) === key)
    const at = order.findIndex((k, place) => {
      const placed = changes[k]
      return place > own && placed !== undefined && isBefore(change, placed)
    })
    order.splice(at < 0 ? order.length : at, 0, i)
  }
  return order
}

function keysOf(refs: readonly MemberRef[]): ReadonlySet<string> {
  return new Set(refs.map(refKey))
}
