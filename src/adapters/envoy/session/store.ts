import { setImmediate as breathe } from 'node:timers/promises'
import type { Assignment, Endpoint } from '../codec/assignment.js'
import type { EndpointSink, Published, SinkHost } from '../sources/sink.js'

/** One publication, for comparing what a proxy says it has. */
interface Publication {
  readonly seq: number
  readonly version: string
  readonly at: number
}

interface SetState {
  published: Published
  readonly history: Publication[]
  /** The publication that last changed an endpoint's own status, by member. */
  readonly changed: Map<string, number>
  readonly first: number
  byMember: ReadonlyMap<string, Endpoint>
}

const KEPT = 256
/** Sets from this size on are worked on in steps, so that nothing else waits long. */
const LARGE = 1_000

/**
 * The full endpoint set of every cluster, and which publication changed which endpoint.
 *
 * A member is in force once a proxy has taken the publication that changed it, or a later one: later
 * changes of other members never ask for a new proof.
 */
export class EndpointStore {
  readonly #sink: EndpointSink
  readonly #now: () => number
  readonly #sets = new Map<string, SetState>()

  constructor(sink: EndpointSink, now: () => number) {
    this.#sink = sink
    this.#now = now
  }

  /** Reads the sets as they stand, whoever changed them last. */
  async load(host: SinkHost, signal: AbortSignal): Promise<void> {
    const found = await this.#sink.load(host, signal)
    for (const name of this.#sets.keys()) if (!found.has(name)) this.#sets.delete(name)
    for (const [name, published] of found) {
      const isNew = this.#sets.get(name)?.published !== published
      if (isNew && published.set.endpoints.length > LARGE) await breathe()
      this.#take(name, published)
    }
  }

  /** @throws Superseded where another set than `expected` stands by now */
  async publish(set: Assignment, expected: Assignment, signal: AbortSignal): Promise<Published> {
    const published = await this.#sink.publish(set, signal, expected)
    if (set.endpoints.length > LARGE) await breathe()
    this.#take(set.cluster, published)
    return published
  }

  names(): readonly string[] {
    return [...this.#sets.keys()]
  }

  set(service: string): Assignment | undefined {
    return this.#sets.get(service)?.published.set
  }

  endpoint(service: string, member: string): Endpoint | undefined {
    return this.#sets.get(service)?.byMember.get(member)
  }

  /** The publication a proxy must have taken for this member to be in force there. */
  seqOf(service: string, member: string): number {
    const state = this.#sets.get(service)
    return state?.changed.get(member) ?? state?.first ?? 0
  }

  /** That publication and all later ones, or those that are remembered: their versions, and when the first was made. */
  since(service: string, seq: number): { versions: ReadonlySet<string>; at: number } {
    const later = (this.#sets.get(service)?.history ?? []).filter((item) => item.seq >= seq)
    return { versions: new Set(later.map((item) => item.version)), at: later[0]?.at ?? 0 }
  }

  #take(name: string, published: Published): void {
    const state = this.#sets.get(name)
    if (state?.published === published) return
    const byMember = index(published.set)
    const entry = { seq: published.seq, version: published.version, at: this.#now() }
    if (state === undefined) {
      this.#sets.set(name, {
        published,
        history: [entry],
        changed: new Map(),
        first: published.seq,
        byMember,
      })
      return
    }
    for (const [member, endpoint] of byMember) {
      const before = state.byMember.get(member)
      const isSame = before === endpoint || before?.status === endpoint.status
      if (before === undefined || !isSame) state.changed.set(member, published.seq)
    }
    for (const member of state.byMember.keys()) {
      if (!byMember.has(member)) state.changed.delete(member)
    }
    state.published = published
    state.byMember = byMember
    state.history.push(entry)
    if (state.history.length > KEPT) state.history.shift()
  }
}

function index(set: Assignment): ReadonlyMap<string, Endpoint> {
  const members = new Map<string, Endpoint>()
  for (const endpoint of set.endpoints) {
    if (endpoint.member !== undefined) members.set(endpoint.member, endpoint)
  }
  return members
}
