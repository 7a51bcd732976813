import type { Version } from '../../../kit/version.js'
import type { Subscribers } from './sink.js'

/** The answer of one proxy to one endpoint set. */
export interface NodeReceipt {
  /** The `node.id` of its bootstrap. */
  readonly node: string
  readonly version: Version | undefined
  /**
   * - `pending`: sent, no answer yet
   * - `acked`: taken
   * - `nacked`: refused; the proxy keeps its previous set
   * - `disconnected`: its stream is gone; the proxy keeps its last set
   */
  readonly state: 'pending' | 'acked' | 'nacked' | 'disconnected'
  /** Envoy's words, if it refused the last set. */
  readonly error: string | undefined
  /** The publication it refused last. */
  readonly refused: number | undefined
  /** Since when it is in this state, on the monotonic clock. */
  readonly since: number
  /** Returns when it took this publication or a later one; undefined if it has not yet. */
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
  /** Whether that stream is the only one of its process. */
  isWhole: boolean
  /** When this stream asked for the set first, and was heard of last. */
  began: number
  heard: number
  sent: number
  acks: Ack[]
  nack: { readonly seq: number; readonly text: string } | undefined
  since: number
}

const KEPT = 512
/** Envoy comes back within 30 s, its longest pause; milliseconds. */
const RECONNECT = 35_000

/**
 * The receipts of a sink whose proxies answer: who took which publication, and when.
 *
 * A stream that ends leaves its last receipt behind: Envoy keeps the last set for as long as it
 * lives. The next stream of the same node takes it over. One that never took anything leaves nothing.
 */
export class ReceiptBook implements Subscribers {
  readonly #streams = new Map<object, Map<string, Entry>>()
  /** By node, then by set: each stream of its own. */
  readonly #nodes = new Map<string, Map<string, Set<Entry>>>()
  readonly #now: () => number
  readonly #listeners = new Set<() => void>()

  constructor(now: () => number) {
    this.#now = now
  }

  /** @param isWhole - whether that stream is the only one of its process (ADS) */
  subscribe(
    stream: object,
    node: string,
    version: Version | undefined,
    cluster: string,
    isWhole = false,
  ): void {
    const mine = entered(this.#streams, stream, () => new Map<string, Entry>())
    if (mine.has(cluster)) return
    const now = this.#now()
    const same = entered(this.#nodes, node, () => new Map<string, Set<Entry>>())
    const entries = entered(same, cluster, () => new Set<Entry>())
    const fresh = {
      stream,
      version,
      isWhole,
      nack: undefined,
      began: now,
      heard: now,
      since: now,
    }
    let entry = [...entries].find((left) => left.stream === undefined)
    if (entry === undefined) {
      entry = { node, cluster, sent: 0, acks: [], ...fresh }
      entries.add(entry)
    } else Object.assign(entry, fresh)
    mine.set(cluster, entry)
  }

  unsubscribe(stream: object, cluster: string): void {
    const entry = this.#find(stream, cluster)
    if (entry === undefined) return
    this.#streams.get(stream)?.delete(cluster)
    this.#forget(entry)
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
    entry.heard = at
    this.#tell()
  }

  nacked(stream: object, cluster: string, seq: number, text: string): void {
    const entry = this.#find(stream, cluster)
    if (entry === undefined) return
    entry.nack = { seq, text }
    entry.since = this.#now()
    entry.heard = entry.since
    this.#tell()
  }

  gone(stream: object): void {
    for (const entry of this.#streams.get(stream)?.values() ?? []) {
      entry.stream = undefined
      entry.since = this.#now()
      if (entry.acks.length === 0) this.#forget(entry)
    }
    this.#streams.delete(stream)
    this.#tell()
  }

  /** Forgets a node whose last stream is gone. */
  drop(node: string): void {
    for (const entry of this.#of(node)) if (entry.stream === undefined) this.#forget(entry)
  }

  /**
   * Forgets one process of a node that has several, and that is known to have ended: the one whose
   * stream began first.
   *
   * @returns whether there was a stream that is gone
   */
  dropOne(node: string): boolean {
    const gone = this.#of(node).filter(({ stream }) => stream === undefined)
    const first = Math.min(...gone.map(({ began }) => began))
    for (const entry of gone) if (entry.began === first) this.#forget(entry)
    return gone.length > 0
  }

  /**
   * How many processes of that node id there are: each has a stream of its own for each set, or for each of
   * its clusters that takes the set (`each`), where it has not one stream for everything. A stream
   * that was silent since a later one began, and has ended, was the same process before it lost touch.
   */
  streams(node: string, each: (set: string) => number = () => 1): number {
    const now = this.#now()
    let most = 0
    for (const [set, entries] of [...(this.#nodes.get(node) ?? [])]) {
      for (const entry of [...entries]) {
        const { stream, since, heard } = entry
        if (stream !== undefined || now - since < RECONNECT) continue
        const later = [...entries].some(
          (other) => other.stream !== undefined && other.began > heard,
        )
        if (later) this.#forget(entry)
      }
      const whole = [...entries].filter(({ isWhole }) => isWhole).length
      most = Math.max(most, whole + Math.ceil((entries.size - whole) / Math.max(1, each(set))))
    }
    return most
  }

  /** One receipt per node: with several streams under one node id, the least of them. */
  of(cluster: string): NodeReceipt[] {
    return [...this.#nodes].flatMap(([node, sets]) => {
      const entries = sets.get(cluster)
      return entries === undefined ? [] : [toReceipt(node, [...entries])]
    })
  }

  nodes(): ReadonlySet<string> {
    return new Set(this.#nodes.keys())
  }

  isConnected(node: string): boolean {
    return this.#of(node).some(({ stream }) => stream !== undefined)
  }

  listen(fn: () => void): () => void {
    this.#listeners.add(fn)
    return () => this.#listeners.delete(fn)
  }

  #find(stream: object, cluster: string): Entry | undefined {
    return this.#streams.get(stream)?.get(cluster)
  }

  #of(node: string): Entry[] {
    return [...(this.#nodes.get(node)?.values() ?? [])].flatMap((entries) => [...entries])
  }

  #forget(entry: Entry): void {
    const { node, cluster } = entry
    const sets = this.#nodes.get(node)
    const entries = sets?.get(cluster)
    entries?.delete(entry)
    if (entries?.size === 0) sets?.delete(cluster)
    if (sets?.size === 0) this.#nodes.delete(node)
  }

  #tell(): void {
    for (const fn of [...this.#listeners]) fn()
  }
}

function entered<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key)
  if (value === undefined) map.set(key, (value = make()))
  return value
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
