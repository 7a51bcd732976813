import { createHash } from 'node:crypto'
import { CLA_TYPE } from '../codec/json.js'
import type { ReceiptBook } from '../sources/receipts.js'
import type { Published } from '../sources/sink.js'
import { NameLimit } from './name-limit.js'
import { onMessage, type ByteStream } from './server.js'
import type { WireAssignment } from './wire-assignment.js'
import {
  decodeDelta,
  decodeNode,
  decodeSotw,
  encodeDelta,
  encodeSotw,
  type NodeIdentity,
  type XdsRequest,
  type XdsResource,
} from './xds-codec.js'

/** How a stream is spoken. */
export interface StreamKind {
  readonly delta: boolean
  /** ADS: the only stream of its process. */
  readonly isWhole: boolean
}

/** What streams are served from. */
export interface XdsSource {
  readonly book: ReceiptBook
  /** What is remembered of names for all streams together. */
  readonly names: NameLimit
  endpoints(cluster: string): (Published & { readonly set: WireAssignment }) | undefined
  /** Resources of other types, as they were given. */
  others(type: string): readonly XdsResource[]
}

/** How a response that went out is answered for. */
interface Sent {
  readonly type: string
  /** Publications in it, by cluster. */
  readonly seqs: ReadonlyMap<string, number>
}

/** One subscription to one type of resource on one stream. */
interface Subscription {
  readonly names: Set<string>
  last: string
}

/** More sets than any proxy asks for, and more answers than any owes. */
const MAX_NAMES = 10_000
const MAX_CHARACTERS = 1_000_000
const MAX_SENT = 512
/** Of Envoy's words to a refusal, which hold the whole set. */
const MAX_WORDS = 4_000

/** What is remembered of names for all streams of a server. */
export function allNames(): NameLimit {
  const of = 'resource names on all streams'
  return new NameLimit({ count: 10_000_000, characters: 100_000_000, of })
}

/**
 * One stream of one proxy: state of the world or delta, EDS alone or ADS.
 *
 * A response carries only what changed: an endpoint set that is not in it stays as it is, in both
 * protocols. The answer names the response by its nonce; an answer to an older one still says what
 * was taken then.
 */
export class XdsStream {
  readonly #stream: ByteStream
  readonly #delta: boolean
  readonly #isWhole: boolean
  readonly #source: XdsSource
  readonly #names: NameLimit
  readonly #sent = new Map<string, Sent>()
  readonly #subscriptions = new Map<string, Subscription>()
  /** By type: what is to be sent once the client has read what was sent before. */
  readonly #due = new Map<string, Set<string>>()
  #isWriting = false
  #node: NodeIdentity | undefined
  #nonces = 0
  #over = false

  constructor(
    stream: ByteStream,
    { delta, isWhole }: StreamKind,
    source: XdsSource,
    onEnd: () => void,
  ) {
    this.#stream = stream
    this.#delta = delta
    this.#isWhole = isWhole
    this.#source = source
    const bounds = { count: MAX_NAMES, characters: MAX_CHARACTERS }
    this.#names = new NameLimit({ ...bounds, of: 'resource names on one stream' }, source.names)
    const end = (): void => {
      if (this.#over) return
      this.#over = true
      this.#subscriptions.clear()
      this.#names.giveAll()
      source.book.gone(this)
      onEnd()
    }
    onMessage(stream, (bytes) => this.#onRequest(bytes))
    stream.on('end', () => {
      stream.end()
      end()
    })
    stream.on('error', end)
    stream.on('cancelled', end)
    stream.on('close', end)
  }

  /** A set is served, perhaps for the first time: who asked for it is known from now on. */
  served(cluster: string): void {
    if (this.#isAsked(cluster)) this.#enter(cluster)
  }

  /** A set has a new publication. */
  push(cluster: string): void {
    if (this.#isAsked(cluster)) this.#send(CLA_TYPE, [cluster])
  }

  #isAsked(cluster: string): boolean {
    return this.#subscriptions.get(CLA_TYPE)?.names.has(cluster) === true
  }

  #onRequest(bytes: Uint8Array): void {
    if (this.#over) return
    const request = this.#delta ? decodeDelta(bytes) : decodeSotw(bytes)
    this.#node ??= decodeNode(request.node)
    this.#receive(request)
    // There is nothing of it to send, now or later: what is asked for is not remembered.
    const { type } = request
    if (type !== CLA_TYPE && this.#source.others(type).length === 0) return
    if (this.#delta) this.#onDelta(request)
    else this.#onSotw(request)
  }

  /** Takes the answer to an earlier response. */
  #receive({ nonce, error }: XdsRequest): void {
    const sent = this.#sent.get(nonce)
    if (sent === undefined) return
    this.#sent.delete(nonce)
    for (const [cluster, seq] of sent.seqs) {
      if (error === undefined) this.#source.book.acked(this, cluster, seq)
      else this.#source.book.nacked(this, cluster, seq, error.slice(0, MAX_WORDS))
    }
  }

  #onSotw({ type, nonce, names }: XdsRequest): void {
    const known = this.#subscriptions.get(type)
    // An answer to an older response does not know what was asked for since.
    if (known !== undefined && nonce !== known.last) return
    const subscription = known ?? { names: new Set<string>(), last: '' }
    this.#subscriptions.set(type, subscription)
    const wanted = new Set(names)
    const added = [...wanted].filter((name) => !subscription.names.has(name))
    for (const name of [...subscription.names]) {
      if (!wanted.has(name)) this.#drop(type, subscription, name)
    }
    this.#add(type, subscription, added)
    if (type === CLA_TYPE) {
      if (added.length > 0) this.#send(type, added)
    } else if (known === undefined || added.length > 0) this.#send(type, [...wanted])
  }

  #onDelta({ type, subscribe, unsubscribe, initial }: XdsRequest): void {
    const known = this.#subscriptions.get(type)
    const subscription = known ?? { names: new Set<string>(), last: '' }
    this.#subscriptions.set(type, subscription)
    for (const name of unsubscribe) this.#drop(type, subscription, name)
    const names = new Set([...subscribe, ...Object.keys(initial)])
    this.#add(type, subscription, [...names])
    const missing = [...names].filter((name) => !this.#hasAlready(type, name, initial[name]))
    if (missing.length > 0 || (known === undefined && type !== CLA_TYPE)) this.#send(type, missing)
  }

  /** After a reconnect a proxy says what it holds: the same version is its receipt. */
  #hasAlready(type: string, name: string, version: string | undefined): boolean {
    const published = type === CLA_TYPE ? this.#source.endpoints(name) : undefined
    if (published === undefined || version !== published.version) return false
    this.#source.book.sent(this, name, published.seq)
    this.#source.book.acked(this, name, published.seq)
    return true
  }

  #add(type: string, subscription: Subscription, names: readonly string[]): void {
    for (const name of names) {
      if (subscription.names.has(name)) continue
      this.#names.take(name)
      subscription.names.add(name)
      if (type === CLA_TYPE) this.#enter(name)
    }
  }

  /** A set that is not served has no receipts: any client may ask for any name. */
  #enter(cluster: string): void {
    if (this.#node === undefined || this.#source.endpoints(cluster) === undefined) return
    const { id, version } = this.#node
    this.#source.book.subscribe(this, id, version, cluster, this.#isWhole)
  }

  #drop(type: string, subscription: Subscription, name: string): void {
    if (subscription.names.delete(name)) this.#names.give(name)
    if (type === CLA_TYPE) this.#source.book.unsubscribe(this, name)
  }

  /** One response at a time: for a client that does not read, only names are kept, not what they stand for. */
  #send(type: string, names: readonly string[]): void {
    const due = this.#due.get(type) ?? new Set<string>()
    this.#due.set(type, due)
    // Nothing named is everything, for the types that are not endpoints.
    for (const name of names.length === 0 ? ['*'] : names) due.add(name)
    this.#flush()
  }

  #flush(): void {
    for (const [type, names] of this.#due) {
      if (this.#over || this.#isWriting) return
      this.#due.delete(type)
      this.#write(type, [...names])
    }
  }

  #write(type: string, names: readonly string[]): void {
    const seqs = new Map<string, number>()
    const resources = type === CLA_TYPE ? this.#endpoints(names, seqs) : this.#others(type, names)
    if (resources.length === 0) return
    const nonce = String(++this.#nonces)
    const version = versionOf(resources)
    this.#sent.set(nonce, { type, seqs })
    const [oldest] = this.#sent.keys()
    if (this.#sent.size > MAX_SENT && oldest !== undefined) this.#sent.delete(oldest)
    const subscription = this.#subscriptions.get(type)
    if (subscription !== undefined) subscription.last = nonce
    for (const [cluster, seq] of seqs) this.#source.book.sent(this, cluster, seq)
    const encode = this.#delta ? encodeDelta : encodeSotw
    this.#isWriting = true
    this.#stream.write(Buffer.from(encode(type, version, nonce, resources)), () => {
      this.#isWriting = false
      this.#flush()
    })
  }

  #endpoints(names: readonly string[], seqs: Map<string, number>): XdsResource[] {
    return names.flatMap((name) => {
      const published = this.#source.endpoints(name)
      if (published === undefined) return []
      seqs.set(name, published.seq)
      const { version, set } = published
      return [{ type: CLA_TYPE, name, version, value: set.toBytes() }]
    })
  }

  #others(type: string, names: readonly string[]): readonly XdsResource[] {
    const all = this.#source.others(type)
    const wild = names.length === 0 || names.includes('*')
    return wild ? all : all.filter(({ name }) => names.includes(name))
  }
}

function versionOf(resources: readonly XdsResource[]): string {
  const [first] = resources
  if (resources.length === 1 && first !== undefined) return first.version
  const all = resources.map(({ name, version }) => `${name}=${version}`).join('\n')
  return createHash('sha256').update(all).digest('hex').slice(0, 16)
}
