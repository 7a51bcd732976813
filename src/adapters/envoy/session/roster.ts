import type { DrainableError } from '../../../provider/error.js'
import type { NodeLoad } from '../sources/sink.js'
import type { Previous } from './previous.js'
import type { Proxy, ProxyReading } from './proxy.js'

/** One process that can hold work, at one look. */
export interface ProxyView {
  readonly scope: string
  readonly state: 'read' | 'unread' | 'ended'
  readonly node: string | undefined
  readonly proxy: Proxy | undefined
  readonly reading: ProxyReading | undefined
  readonly load: NodeLoad | undefined
  /**
   * - `proxy`: a proxy
   * - `previous`: the process of one before its hot restart
   * - `place`: of a proxy that is known to be there, or expected, and was not seen itself
   */
  readonly role: 'proxy' | 'previous' | 'place'
  /** What the proxy shows of its previous process. */
  readonly previous: Previous | undefined
  readonly known: Known
  readonly note: string | undefined
  readonly error: DrainableError | undefined
}

/** One process that was seen, or is expected. */
export interface Known {
  readonly scope: string
  readonly proxy: Proxy | undefined
  /** Since when it cannot be seen; undefined: it can. */
  unseenSince: number | undefined
  endedAt: number | undefined
}

/** Ended proxies are still listed for this long, for drains that saw them. */
const ENDED_FOR = 3_600_000

/** Every process that was seen once: on the list until the caller's list drops it, or `goneAfter` has passed. */
export class Roster {
  readonly #known = new Map<string, Known>()
  /** By node: processes that are known to have ended, and whose streams may still be in the receipts. */
  readonly #departed = new Map<string, number>()
  readonly #goneAfter: number
  readonly #now: () => number

  constructor(goneAfter: number, now: () => number) {
    this.#goneAfter = goneAfter
    this.#now = now
  }

  has(key: string): boolean {
    return this.#known.has(key)
  }

  all(): readonly Known[] {
    return [...this.#known.values()]
  }

  /** The one of that key, entered where it is new. */
  of(key: string, scope: string, proxy?: () => Proxy): Known {
    let known = this.#known.get(key)
    if (known === undefined) {
      known = {
        scope,
        proxy: proxy?.(),
        unseenSince: undefined,
        endedAt: undefined,
      }
      this.#known.set(key, known)
    }
    return known
  }

  /** A process of a node has ended while another one of it goes on. */
  depart(node: string): void {
    this.#departed.set(node, (this.#departed.get(node) ?? 0) + 1)
  }

  /** Strikes one who departed off, where `fn` finds what is left of it. */
  settle(node: string, fn: () => boolean): boolean {
    const count = this.#departed.get(node) ?? 0
    if (count === 0 || !fn()) return false
    this.#departed.set(node, count - 1)
    return true
  }

  isGone(known: Known): boolean {
    const now = this.#now()
    known.unseenSince ??= now
    return now - known.unseenSince >= this.#goneAfter
  }

  /** Who was listed before and is not now. */
  ended(views: readonly ProxyView[]): ProxyView[] {
    const now = this.#now()
    const listed = new Set(views.map((view) => view.known))
    const scopes = new Set(views.map((view) => view.scope))
    const ended: ProxyView[] = []
    for (const [key, known] of this.#known) {
      if (listed.has(known)) continue
      known.endedAt ??= now
      if (now - known.endedAt > ENDED_FOR) {
        this.#known.delete(key)
        continue
      }
      // A place that was kept for an expected proxy never was a process of its own.
      if (scopes.has(known.scope)) continue
      const note = 'no longer in the list of proxies'
      ended.push(viewOf(known, 'ended', { note, node: known.proxy?.facts?.info.nodeId }))
    }
    return ended
  }
}

/** A view of one who is known, with what of it is known now. */
export function viewOf(
  known: Known,
  state: ProxyView['state'],
  more: Partial<ProxyView> = {},
): ProxyView {
  return {
    scope: known.scope,
    state,
    node: undefined,
    proxy: known.proxy,
    reading: undefined,
    load: undefined,
    role: 'proxy',
    previous: undefined,
    known,
    note: undefined,
    error: undefined,
    ...more,
  }
}
