import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import type { Version } from '../../../kit/version.js'
import { ReceiptBook } from './receipts.js'
import type { Published } from './sink.js'

/** A poller that was not heard of for this long, and for some of its own pauses, is gone; milliseconds. */
const SILENT = 30_000
const PAUSES = 3
const SWEEP = 5_000
/** More proxies than any server of ours has. */
export const MAX_POLLERS = 10_000
/** Answers that a new process was given and has not taken yet. */
const MAX_GIVEN = 16
/** Between the versions of the sets and the name that we gave the poller. */
const MARK = '~'

/** One poll. */
export interface Poll {
  readonly node: string
  readonly version: Version | undefined
  /** The `version_info` it names. */
  readonly told: string
  readonly socket: Socket
}

/** One process that polls; or, without a name, those of a node that have not taken an answer yet. */
interface Poller {
  readonly key: string
  readonly node: string
  readonly name: string
  socket: Socket
  at: number
  /** Its longest pause so far. */
  pause: number
  /** By the name that an answer gave: the sets in it. */
  readonly given: Map<string, readonly string[]>
}

/**
 * Who polls a REST server, one process from another.
 *
 * A poll tells its node and the `version_info` of the last answer that was taken. Two processes of one
 * node.id (a copied bootstrap) look the same by that, so each answer to a new one has a name of its own in
 * its `version_info`, which the poller repeats from then on.
 */
export class Pollers extends ReceiptBook {
  readonly #now: () => number
  readonly #pollers = new Map<string, Poller>()
  readonly #sockets = new WeakMap<Socket, Set<Poller>>()
  #sweptAt = 0

  constructor(now: () => number) {
    super(now)
    this.#now = now
  }

  /**
   * Notes what a poll says of these sets: one that names our version is the receipt, one that does not is no
   * refusal either.
   *
   * @returns the `version_info` of the answer; `held`: it has all of them already; `full`: there is no place for one more
   */
  note(poll: Poll, found: readonly Published[]): { readonly version: string } | 'held' | 'full' {
    const cut = poll.told.lastIndexOf(MARK)
    const name = cut < 0 ? '' : poll.told.slice(cut + 1)
    const versions = (cut < 0 ? poll.told : poll.told.slice(0, cut)).split('+')
    const poller = this.#enter(poll, name)
    if (poller === undefined) return 'full'
    const taken = found.filter(({ version }, i) => versions[i] === version)
    for (const { set, seq } of found) {
      this.subscribe(poller, poll.node, poll.version, set.cluster)
      this.sent(poller, set.cluster, seq)
    }
    for (const { set, seq } of taken) this.acked(poller, set.cluster, seq)
    if (found.length === 0 || (name !== '' && taken.length === found.length)) return 'held'
    const given = name === '' ? this.#give(poller, found) : name
    return { version: `${found.map(({ version }) => version).join('+')}${MARK}${given}` }
  }

  /** Whether a process of that node was heard of lately. */
  override isConnected(node: string): boolean {
    const now = this.#now()
    return [...this.#pollers.values()].some((one) => one.node === node && now - one.at < SILENT)
  }

  /** Forgets every process of a node. */
  override drop(node: string): void {
    for (const poller of [...this.#pollers.values()]) if (poller.node === node) this.#end(poller)
    super.drop(node)
  }

  #enter({ node, socket }: Poll, name: string): Poller | undefined {
    this.#sweep()
    const key = keyOf(node, name)
    const now = this.#now()
    let poller = this.#pollers.get(key)
    if (poller === undefined) {
      if (this.#pollers.size >= MAX_POLLERS) return undefined
      poller = { key, node, name, socket, at: now, pause: 0, given: new Map() }
      this.#pollers.set(key, poller)
      this.#take(node, name)
    }
    poller.pause = Math.max(poller.pause, now - poller.at)
    poller.at = now
    poller.socket = socket
    this.#follow(socket).add(poller)
    return poller
  }

  /** Names the process that an answer goes to. */
  #give(poller: Poller, found: readonly Published[]): string {
    const name = randomBytes(6).toString('hex')
    poller.given.set(
      name,
      found.map(({ set }) => set.cluster),
    )
    const [oldest] = poller.given.keys()
    if (poller.given.size > MAX_GIVEN && oldest !== undefined) poller.given.delete(oldest)
    return name
  }

  /** A new process has taken the answer: from now on it is known by that name, and not as new as well. */
  #take(node: string, name: string): void {
    const fresh = this.#pollers.get(keyOf(node, ''))
    const clusters = fresh?.given.get(name)
    if (fresh === undefined || clusters === undefined) return
    fresh.given.delete(name)
    const waiting = new Set([...fresh.given.values()].flat())
    for (const cluster of clusters) {
      if (!waiting.has(cluster)) this.unsubscribe(fresh, cluster)
    }
    if (fresh.given.size === 0) this.#end(fresh)
  }

  /** Envoy keeps its connection: where it ends it (we may too, after a while), its process has ended. */
  #follow(socket: Socket): Set<Poller> {
    let known = this.#sockets.get(socket)
    if (known !== undefined) return known
    const mine = (known = new Set<Poller>())
    this.#sockets.set(socket, mine)
    const end = (): void => {
      for (const one of mine) if (one.socket === socket) this.#end(one)
    }
    socket.once('end', end)
    socket.once('error', end)
    return known
  }

  #end(poller: Poller): void {
    this.#pollers.delete(poller.key)
    this.gone(poller)
  }

  #sweep(): void {
    const now = this.#now()
    if (now - this.#sweptAt <= SWEEP) return
    this.#sweptAt = now
    for (const poller of [...this.#pollers.values()]) {
      if (now - poller.at > Math.max(SILENT, PAUSES * poller.pause)) this.#end(poller)
    }
  }
}

function keyOf(node: string, name: string): string {
  return JSON.stringify([node, name])
}
