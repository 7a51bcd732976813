import { abortable } from '../../../provider/abort.js'
import { pause, systemClock } from '../../../provider/clock.js'
import type { MemberRef } from '../../../provider/contract.js'
import { canonicalMember } from '../codec/address.js'
import type { Assignment } from '../codec/assignment.js'
import type { JsonAssignment } from '../codec/json.js'
import type { EdsStatus } from '../codec/status.js'
import { agreed, nothingToAdopt } from './adoption.js'
import { readHeld, type HeldMembers } from './initial.js'
import { Superseded, type Published, type SinkHost } from './sink.js'

/** An assignment whose edits are of its own kind. */
type Edited<A> = { withStatus(edits: ReadonlyMap<string, EdsStatus>): A } & Assignment

/** A failed adoption is tried again after this long, in milliseconds. */
const AGAIN = 1_000

/** How the first sets come about. */
export interface ServedSetsOptions<A> {
  readonly instance: string
  /** Of what is adopted. */
  readonly convert: (set: JsonAssignment) => A | Promise<A>
  /** Sets of the caller, served where nothing can be adopted; undefined: there are none. */
  readonly otherwise: (() => Promise<readonly A[]>) | undefined
  readonly held: HeldMembers
}

/**
 * The sets of a sink that serves them itself: given at the start, or adopted from the proxies before
 * anything is served, so that nothing is ever emptied by a management server that just came up.
 */
export class ServedSets<A extends Edited<A>> {
  readonly #options: ServedSetsOptions<A>
  readonly #sets = new Map<string, Published & { readonly set: A }>()
  readonly #listeners = new Set<(cluster: string) => void>()
  /** Sets that the caller gave while others were still to be adopted: nothing that is adopted replaces them. */
  readonly #given = new Set<string>()
  #seq = 0
  #loading: Promise<void> | undefined
  #loaded = false

  constructor(options: ServedSetsOptions<A>) {
    this.#options = options
  }

  get(cluster: string): (Published & { readonly set: A }) | undefined {
    return this.#sets.get(cluster)
  }

  all(): ReadonlyMap<string, Published> {
    return new Map(this.#sets)
  }

  /** Takes over the sets of the proxies, once; a failed attempt is repeated by the next call. */
  async adopt(host: SinkHost, signal: AbortSignal): Promise<void> {
    if (this.#loaded) return
    // Callers share it, so it heeds none of their signals; the host ends it at its close.
    if (this.#loading === undefined) {
      const whole = new AbortController().signal
      this.#loading = this.#adopt(host, whole).finally(() => (this.#loading = undefined))
      this.#loading.catch(() => undefined)
    }
    await abortable(this.#loading, signal)
  }

  /** Adopts from the start on, until it is done: proxies that come up wait for their sets, whoever drains or not. */
  async adoptInBackground(host: SinkHost, signal: AbortSignal): Promise<void> {
    while (!this.#loaded && !signal.aborted) {
      try {
        await this.adopt(host, signal)
      } catch {
        // Who needs the sets gets the error from load(); here it is only tried again.
        await pause(systemClock, AGAIN, signal).catch(() => undefined)
      }
    }
  }

  /** @throws Superseded where another set than `expected` stands */
  publish(set: A, expected: Assignment | undefined): Published & { readonly set: A } {
    if (expected !== undefined && this.#sets.get(set.cluster)?.set !== expected) {
      throw new Superseded(set.cluster)
    }
    return this.#put(set)
  }

  /** The sets that are there at the start: nothing is adopted then. */
  begin(sets: readonly A[]): void {
    for (const set of sets) this.#put(set)
    this.#loaded ||= sets.length > 0
  }

  /** A whole set of the caller. The others are still adopted, where none were there at the start. */
  put(set: A): void {
    if (!this.#loaded) this.#given.add(set.cluster)
    this.#put(set)
  }

  #put(set: A): Published & { readonly set: A } {
    const published = { set, seq: ++this.#seq, version: set.version }
    this.#sets.set(set.cluster, published)
    for (const fn of this.#listeners) fn(set.cluster)
    return published
  }

  listen(fn: (cluster: string) => void): void {
    this.#listeners.add(fn)
  }

  async #adopt(host: SinkHost, signal: AbortSignal): Promise<void> {
    const { convert, otherwise, instance } = this.#options
    const refs = await readHeld(this.#options.held, instance)
    const own = (await otherwise?.()) ?? []
    const ownNames = new Set([...own.map(({ cluster }) => cluster), ...this.#given])
    const proxies = await host.held(signal)
    const { sets: found, draining } = agreed(proxies, ownNames)
    // Without sets of its own it has nothing to serve.
    if (found.length === 0 && ownNames.size === 0) throw nothingToAdopt(proxies)
    const adopted: A[] = []
    for (const set of found) adopted.push(await convert(set))
    const names = new Set(adopted.map(({ cluster }) => cluster))
    const sets = [...adopted, ...own.filter(({ cluster }) => !names.has(cluster))]
    // All that is given by now: also what came while the proxies were asked.
    const open = sets.filter(({ cluster }) => !this.#given.has(cluster))
    const services = new Map(proxies.flatMap((proxy) => [...proxy.services]))
    const held = placesOf(refs, sets, services)
    for (const set of open) this.#put(withHeld(set, held, draining))
    this.#loaded = true
  }
}

/**
 * The members that are held, by set. A ref names a cluster, and which set feeds it may not be known, where no proxy
 * told: then it stands for every set that has the member. No held member is opened.
 */
function placesOf(
  refs: readonly MemberRef[],
  sets: readonly Assignment[],
  services: ReadonlyMap<string, string>,
): ReadonlyMap<string, ReadonlySet<string>> {
  const members = new Map(
    sets.map(({ cluster, endpoints }) => [cluster, new Set(endpoints.map((one) => one.member))]),
  )
  const held = new Map(sets.map(({ cluster }) => [cluster, new Set<string>()]))
  for (const { pool, member: name } of refs) {
    const member = canonicalMember(name)
    const service = services.get(pool)
    const isKnown = service !== undefined || members.get(pool)?.has(member) === true
    for (const [cluster, there] of members) {
      const isMeant = isKnown ? cluster === (service ?? pool) : there.has(member)
      if (isMeant) held.get(cluster)?.add(member)
    }
  }
  return held
}

/** The set with every held member DRAINING in it: nothing may open them between two processes of ours. */
function withHeld<A extends Edited<A>>(
  set: A,
  held: ReadonlyMap<string, ReadonlySet<string>>,
  draining: ReadonlyMap<string, ReadonlySet<string>>,
): A {
  const { cluster } = set
  const members = new Set([...(held.get(cluster) ?? []), ...(draining.get(cluster) ?? [])])
  const edits = set.endpoints.flatMap(({ member, status }) =>
    member !== undefined && members.has(member) && status !== 'DRAINING'
      ? [[member, 'DRAINING' satisfies EdsStatus] as const]
      : [],
  )
  return edits.length === 0 ? set : set.withStatus(new Map(edits))
}

let ephemeral = 0

/**
 * The name of a server for proxies. With port 0 the system chooses a port for each: they are told apart by their order
 * in this process, because drains of one name share their floor.
 */
export function listeningAt(kind: 'grpc' | 'rest', host: string, port: number): string {
  if (port !== 0) return `${kind}:${host}:${port}`
  ephemeral += 1
  return `${kind}:${host}:0#${ephemeral}`
}
