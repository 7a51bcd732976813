import { RecentMap } from '../../../kit/recent-map.js'
import type { Reading } from '../../../provider/contract.js'
import { listed } from '../../../provider/quote.js'
import { refKey } from '../../../provider/member-ref.js'

/** How long a copy that has vanished is remembered of a member that no drain holds, in milliseconds. */
const KEPT = 600_000

/** The copies of the last look at a member, by scope, and those that were gone in a look, and when. */
interface Copies {
  seen: readonly string[]
  readonly gone: Map<string, number>
}

/**
 * What FQDN templates made and DNS took away again. Whether BIG-IP cuts the connections of an ephemeral
 * member that is deleted is not documented, and nothing counts them from then on. So an end of its scope is
 * no end of its work.
 */
export class Vanished {
  readonly #held = new Map<string, Copies>()
  /** Of members that serve: nothing hangs on it an hour after their last look. */
  readonly #open = new RecentMap<string, Copies>()

  /** Takes a reading of a look at every unit in, and says what it can't verify. */
  note(reading: Reading, now: number): Reading {
    // Scopes of copies are named by their unit and themselves.
    const made = reading.scopes.map(({ scope }) => scope).filter((scope) => scope.includes(' '))
    const key = refKey(reading.ref)
    const before = this.#held.get(key) ?? this.#open.get(key)
    if (!reading.present || (made.length === 0 && before === undefined)) return reading
    const known = before ?? { seen: [], gone: new Map<string, number>() }
    const isHeld = reading.own !== 'ready' || reading.inherited !== undefined
    const [kept, left] = isHeld ? [this.#held, this.#open] : [this.#open, this.#held]
    kept.set(key, known)
    left.delete(key)
    const { seen, gone } = known
    for (const scope of seen) if (!made.includes(scope)) gone.set(scope, now)
    known.seen = made
    if (!isHeld) for (const [scope, at] of gone) if (now > at + KEPT) gone.delete(scope)
    if (gone.size === 0) return reading
    const [who = ''] = listed('what its template made was taken away', [...gone.keys()])
    const why = `${who}: its connections may live on, and nothing counts them`
    const other = reading.unverified === undefined ? '' : `${reading.unverified}; `
    return { ...reading, unverified: `${other}${why}` }
  }
}
