import type { Version } from '../../../kit/version.js'

/** What one proxy has said about one endpoint set. */
export interface NodeReceipt {
  /** The `node.id` of its bootstrap. */
  readonly node: string
  readonly version: Version | undefined
  /**
   * - `pending`: sent, no answer yet
   * - `acked`: taken
   * - `nacked`: refused; the proxy goes on with what it had
   * - `disconnected`: its stream is gone; it goes on with what it had
   */
  readonly state: 'pending' | 'acked' | 'nacked' | 'disconnected'
  /** Envoy's words, where it refused the last set. */
  readonly error: string | undefined
  /** The publication it refused last. */
  readonly refused: number | undefined
  /** Since when it is in this state, by the monotonic clock. */
  readonly since: number
  /** When it took this publication or a later one; undefined: not yet. */
  ackedAt(seq: number): number | undefined
}

interface Ack {
  readonly seq: number
  readonly at: number
}

/** One subscription: one stream of one proxy, for one set. */
interface Entry {
  readonly node: string
  readonly cluster: string
  stream: object | undefined
  version: Version | undefined
  sent: number
  acks: Ack[]
  nack: { readonly seq: number; readonly text: string } | undefined
  since: number
}

const KEPT = 512

/**
 * The receipts of a sink whose proxies answer: who took which publication, and when.
 *
 * A stream that ends leaves its last receipt behind: Envoy keeps the last set for as long as it
 * lives. The next stream of the same node takes it over.
 */
export class ReceiptBook {
  readonly #entries: Entry[] = []
  readonly #now: () => number
  readonly #listeners = new Set<() => void>()

  constructor(now: () => number) {
    this.#now = now
  }

  subscribe(stream: object, node: string, version: Version | undefined, cluster: string): void {
    const same = this.#find(stream, cluster)
    if (same !== undefined) return
    const left = this.#entries.find(
      (entry) => entry.stream === undefined && entry.node === node && entry.cluster === cluster,
    )
    if (left !== undefined) {
      Object.assign(left, { stream, version, nack: undefined, since: this.#now() })
      return
    }
    this.#entries.push({
      node,
      cluster,
      stream,
      version,
      sent: 0,
      acks: [],
      nack: undefined,
      since: this.#now(),
    })
  }

  unsubscribe(stream: object, cluster: string): void {
    const index = this.#entries.findIndex(
      (entry) => entry.stream === stream && entry.cluster === cluster,
    )
    if (index !== -1) this.#entries.splice(index, 1)
    this.#tell()
  }

  sent(stream: object, cluster: string, seq: number): void {
    const entry = this.#find(stream, cluster)
    if (entry === undefined || entry.sent === seq) return
    entry.sent = seq
    entry.since = this.#now()
  }

  acked(stream: object, cluster: string, seq: number): void {
    const entry = this.#find(stream, cluster)
    if (entry === undefined) return
    entry.nack = undefined
    const at = this.#now()
    if (seq > (entry.acks.at(-1)?.seq ?? -1)) {
      entry.acks.push({ seq, at })
      // Dropping the oldest only makes an old publication look taken later than it was.
      if (entry.acks.length > KEPT) entry.acks.shift()
    }
    entry.since = at
    this.#tell()
  }

  nacked(stream: object, cluster: string, seq: number, text: string): void {
    const entry = this.#find(stream, cluster)
    if (entry === undefined) return
    entry.nack = { seq, text }
    entry.since = this.#now()
    this.#tell()
  }

  gone(stream: object): void {
    for (const entry of this.#entries) {
      if (entry.stream !== stream) continue
      entry.stream = undefined
      entry.since = this.#now()
    }
    this.#tell()
  }

  /** Forgets a node whose last stream is gone. */
  drop(node: string): void {
    for (let i = this.#entries.length - 1; i >= 0; i--) {
      const entry = this.#entries[i]
      if (entry?.node === node && entry.stream === undefined) this.#entries.splice(i, 1)
    }
  }

  /** One receipt per node: with several streams under one node id, the least of them. */
  of(cluster: string): NodeReceipt[] {
    const nodes = new Map<string, Entry[]>()
    for (const entry of this.#entries) {
      if (entry.cluster !== cluster) continue
      const list = nodes.get(entry.node)
      if (list === undefined) nodes.set(entry.node, [entry])
      else list.push(entry)
    }
    return [...nodes].map(([node, entries]) => toReceipt(node, entries))
  }

  /** Every node that ever subscribed to anything and was not dropped. */
  nodes(): ReadonlySet<string> {
    return new Set(this.#entries.map((entry) => entry.node))
  }

  /** Whether a stream of that node is open. */
  isConnected(node: string): boolean {
    return this.#entries.some((entry) => entry.node === node && entry.stream !== undefined)
  }

  /** Calls `fn` at each answer, until the returned function is called. */
  listen(fn: () => void): () => void {
    this.#listeners.add(fn)
    return () => this.#listeners.delete(fn)
  }

  #find(stream: object, cluster: string): Entry | undefined {
    return this.#entries.find((entry) => entry.stream === stream && entry.cluster === cluster)
  }

  #tell(): void {
    for (const fn of [...this.#listeners]) fn()
  }
}

function toReceipt(node: string, entries: readonly Entry[]): NodeReceipt {
  const states = entries.map(stateOf)
  const nacks = entries.flatMap(({ nack }) => nack?.seq ?? [])
  const order = ['disconnected', 'nacked', 'pending', 'acked'] as const
  const state = order.find((candidate) => states.includes(candidate)) ?? 'pending'
  return {
    node,
    version: entries.find((entry) => entry.version !== undefined)?.version,
    state,
    error: entries.find((entry) => entry.nack !== undefined)?.nack?.text,
    refused: nacks.length === 0 ? undefined : Math.max(...nacks),
    since: Math.max(...entries.map((entry) => entry.since)),
    ackedAt: (seq) => {
      const times = entries.map((entry) => entry.acks.find((ack) => ack.seq >= seq)?.at)
      return times.includes(undefined) ? undefined : Math.max(...(times as number[]))
    },
  }
}

function stateOf(entry: Entry): NodeReceipt['state'] {
  if (entry.stream === undefined) return 'disconnected'
  if (entry.nack !== undefined) return 'nacked'
  return (entry.acks.at(-1)?.seq ?? -1) >= entry.sent && entry.acks.length > 0 ? 'acked' : 'pending'
}
