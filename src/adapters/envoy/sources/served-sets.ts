import { abortable } from '../../../provider/abort.js'
import type { MemberRef } from '../../../provider/contract.js'
import type { JsonObject } from '../../../kit/json.js'
import { canonicalMember } from '../codec/address.js'
import type { Assignment } from '../codec/assignment.js'
import type { EdsStatus } from '../codec/status.js'
import { readHeld, type HeldMembers } from './initial.js'
import { Superseded, type Published, type Recovered, type SinkHost } from './sink.js'

/** An assignment whose edits are of its own kind. */
type Edited<A> = { withStatus(edits: ReadonlyMap<string, EdsStatus>): A } & Assignment

const NOTHING: Recovered = { sets: [], draining: new Map(), services: new Map() }

/** How the first sets come about. */
export interface ServedSetsOptions<A> {
  readonly instance: string
  readonly convert: (resources: readonly JsonObject[]) => Promise<readonly A[]>
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
  #seq = 0
  #loading: Promise<void> | undefined
  #loaded = false

  constructor(options: ServedSetsOptions<A>) {
    this.#options = options
  }

  get loaded(): boolean {
    return this.#loaded
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

  /** @throws Superseded where another set than `expected` stands */
  publish(set: A, expected: Assignment | undefined): Published & { readonly set: A } {
    if (expected !== undefined && this.#sets.get(set.cluster)?.set !== expected) {
      throw new Superseded(set.cluster)
    }
    return this.put(set)
  }

  put(set: A): Published & { readonly set: A } {
    const published = { set, seq: ++this.#seq, version: set.version }
    this.#sets.set(set.cluster, published)
    this.#loaded = true
    for (const fn of this.#listeners) fn(set.cluster)
    return published
  }

  listen(fn: (cluster: string) => void): void {
    this.#listeners.add(fn)
  }

  async #adopt(host: SinkHost, signal: AbortSignal): Promise<void> {
    const { convert, otherwise, held, instance } = this.#options
    const refs = await readHeld(held, instance)
    const own = (await otherwise?.()) ?? []
    const left =
      (await host.recover?.(new Set(own.map(({ cluster }) => cluster)), signal)) ?? NOTHING
    // Without sets of its own it has nothing to serve: adopt() says why.
    const nothing = left.sets.length === 0 && own.length === 0
    const found = nothing ? await host.adopt(signal) : left.sets
    const adopted = found.length === 0 ? [] : await convert(found)
    const names = new Set(adopted.map(({ cluster }) => cluster))
    const sets = [...adopted, ...own.filter(({ cluster }) => !names.has(cluster))]
    for (const set of sets) this.put(withHeld(set, refs, left))
  }
}

/** The set with everybody DRAINING in it who is held: nothing may open them between two processes of ours. */
function withHeld<A extends Edited<A>>(
  set: A,
  refs: readonly MemberRef[],
  { draining, services }: Recovered,
): A {
  const held = refs.flatMap(({ pool, member }) =>
    (services.get(pool) ?? pool) === set.cluster ? [canonicalMember(member)] : [],
  )
  const members = new Set([...held, ...(draining.get(set.cluster) ?? [])])
  const edits = set.endpoints.flatMap(({ member, status }) =>
    member !== undefined && members.has(member) && status !== 'DRAINING'
      ? [[member, 'DRAINING' satisfies EdsStatus] as const]
      : [],
  )
  return edits.length === 0 ? set : set.withStatus(new Map(edits))
}
