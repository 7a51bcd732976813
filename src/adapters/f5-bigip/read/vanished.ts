import type { LoadScope, Reading } from '../../../provider/contract.js'
import { listed } from '../../../provider/quote.js'
import { refKey } from '../../../provider/member-ref.js'

/** How long what has vanished is remembered of a member that no drain holds, in milliseconds. */
const KEPT = 600_000

/** What the last looks showed of one copy. */
interface Trace {
  readonly arrivals: number | undefined
  /** Since when it was forced offline and showed nothing; undefined: it did not. */
  readonly zeroSince: number | undefined
  readonly sampledAt: number
}

/** The copies of one member. */
interface Copies {
  readonly traces: Map<string, Trace>
  /** Those that vanished before they were seen idle, and when. */
  readonly busy: Map<string, number>
}

/**
 * What FQDN templates made and DNS took away again. Whether BIG-IP cuts the connections of an ephemeral
 * member that is deleted is not documented, and nothing counts them from then on. So an end of its scope is
 * no end of its work, unless it was forced offline and seen idle before: in two samples as far apart as
 * statistics can lag.
 */
export class Vanished {
  readonly #freshness: number
  readonly #known = new Map<string, Copies>()

  /** @param freshness - how old statistics can be, in milliseconds */
  constructor(freshness: number) {
    this.#freshness = freshness
  }

  /** Takes a reading of a look at every unit in, and says what it can't verify. */
  note(reading: Reading, now: number): Reading {
    const made = reading.scopes.filter(isCopy)
    const key = refKey(reading.ref)
    const copies: Copies = this.#known.get(key) ?? { traces: new Map(), busy: new Map() }
    if (!reading.present || (made.length === 0 && !this.#known.has(key))) return reading
    this.#known.set(key, copies)
    this.#follow(copies, made, now)
    const held = reading.own !== 'ready' || reading.inherited !== undefined
    if (!held) forget(copies.busy, now)
    if (copies.busy.size === 0) return reading
    const names = [...copies.busy.keys()]
    const [who = ''] = listed(
      'what its template made was taken away before it was seen idle',
      names,
    )
    const why = `${who}: its connections may live on, and nothing counts them`
    const before = reading.unverified === undefined ? '' : `${reading.unverified}; `
    return { ...reading, unverified: `${before}${why}` }
  }

  #follow({ traces, busy }: Copies, made: readonly LoadScope[], now: number): void {
    const seen = new Set(made.map(({ scope }) => scope))
    for (const [scope, trace] of traces) {
      if (seen.has(scope)) continue
      traces.delete(scope)
      if (!this.#wasIdle(trace)) busy.set(scope, now)
    }
    for (const scope of made) traces.set(scope.scope, follow(traces, scope))
  }

  #wasIdle({ zeroSince, sampledAt }: Trace): boolean {
    return zeroSince !== undefined && sampledAt - zeroSince >= this.#freshness
  }
}

/** Scopes of copies are named by their unit and themselves. */
function isCopy({ scope }: LoadScope): boolean {
  return scope.includes(' ')
}

function forget(busy: Map<string, number>, now: number): void {
  for (const [scope, at] of busy) if (now > at + KEPT) busy.delete(scope)
}

function follow(traces: ReadonlyMap<string, Trace>, scope: LoadScope): Trace {
  const { arrivals, sampledAt, active, queued, state, inForce, admin } = scope
  // To one that is only disabled persistent clients come until it is taken away.
  const closed = inForce && admin === 'maint'
  const zero = state === 'read' && active + queued === 0 && closed
  const before = traces.get(scope.scope)
  const since = before?.arrivals === arrivals ? before?.zeroSince : undefined
  return { arrivals, sampledAt, zeroSince: zero ? (since ?? sampledAt) : undefined }
}
