import type {
  AdminState,
  Capabilities,
  Change,
  ChangeResult,
  LoadScope,
  MemberRef,
  PoolReading,
  Reading,
} from '../provider/contract.js'
import { atLeast, formatRef, isSameIdentity, refKey } from '../provider/member-ref.js'
import { formatSocket } from '../provider/address.js'
import { DrainableError, type ErrorCode } from '../provider/error.js'
import { isNamed, noMember } from './check-options.js'
import { highest, serves, type FakeMember } from './fake-member.js'

/** One process of the fake balancer. */
export interface FakeScope {
  readonly scope: string
  /** Its state; `unread`: the process exists but can't be read. Default `read`. */
  readonly state?: 'read' | 'unread' | 'ended'
  /** Its incarnation. Default: a number that grows with each reload. */
  readonly incarnation?: string
  /** `false`: no change takes effect in it. Default: it takes each state at once. */
  readonly inForce?: boolean
  /** Marks a process that was replaced by a newer one: it takes no more changes. */
  readonly old?: boolean
  readonly released?: boolean
  readonly pooled?: number
  readonly note?: string
}

interface Count {
  active: number
  queued: number
  arrivals: number
}

interface Process {
  readonly scope: string
  readonly wish: FakeScope
  incarnation: string
  ended: boolean
  /** Only for an old process: each member's state when it was replaced. */
  readonly frozen?: ReadonlyMap<string, AdminState>
  readonly counts: Map<string, Count>
}

/** The balancer behind {@link fakeProvider}: plain state, no time, no promise. */
export class FakeBalancer {
  readonly #members = new Map<string, FakeMember>()
  /** The members of each pool, by key. */
  readonly #pools = new Map<string, Map<string, FakeMember>>()
  readonly #ever = new Set<string>() // every member that there was at any time
  readonly #capabilities: Capabilities
  readonly #whenNone: PoolReading['whenNone']
  #processes: Process[] = []
  #generation = 1
  #ids = 0

  constructor(
    pools: Readonly<Record<string, readonly string[]>>,
    scopes: readonly string[],
    capabilities: Capabilities,
    whenNone: PoolReading['whenNone'],
  ) {
    this.#capabilities = capabilities
    this.#whenNone = whenNone
    for (const [pool, members] of Object.entries(pools)) {
      this.#pools.set(pool, new Map())
      for (const member of members) this.#place({ pool, member })
    }
    this.setScopes(scopes)
  }

  pools(): ReadonlySet<string> {
    return new Set(this.#pools.keys())
  }

  refs(): readonly MemberRef[] {
    return [...this.#members.values()].map(({ ref }) => ref)
  }

  find(ref: MemberRef): FakeMember | undefined {
    return this.#members.get(refKey(ref))
  }

  /** @throws where it is not there */
  member(ref: MemberRef): FakeMember {
    const found = this.find(ref)
    if (found) return found
    throw noMember(ref, this.refs())
  }

  /** The member, or a new one in its place. */
  revive(ref: MemberRef): FakeMember {
    if (!isNamed(ref)) throw noMember(ref, this.refs())
    return this.find(ref) ?? this.#place(ref)
  }

  drop(ref: MemberRef): void {
    this.#members.delete(refKey(ref))
    this.#pools.get(ref.pool)?.delete(refKey(ref))
  }

  load(ref: MemberRef): number {
    const counts = this.#processes.map((process) => process.counts.get(refKey(ref)))
    return counts.reduce((sum, count) => sum + (count ? count.active + count.queued : 0), 0)
  }

  /** Work begins; the returned function ends it, once. Work that was cut or lost meanwhile ends silently. */
  work(ref: MemberRef, n: { active: number; queued: number }, scope?: string): () => void {
    // Work of one that is gone lives on; of one that never was it would be a test of something else.
    if (!this.#ever.has(refKey(ref))) throw noMember(ref, this.refs())
    const process = this.#processes.find((p) => !p.ended && (scope ?? p.scope) === p.scope)
    if (!process) throw new Error(`The fake has no process ${scope ?? ''}`)
    const key = refKey(ref)
    const count = process.counts.get(key) ?? { active: 0, queued: 0, arrivals: 0 }
    process.counts.set(key, count)
    count.active += n.active
    count.queued += n.queued
    count.arrivals += n.active
    let open = true
    return () => {
      if (!open) return
      open = false
      count.active = Math.max(0, count.active - n.active)
      count.queued = Math.max(0, count.queued - n.queued)
      this.#endEmptyOld()
    }
  }

  setScopes(scopes: readonly (string | FakeScope)[]): void {
    const wished = scopes.map((s): FakeScope => (typeof s === 'string' ? { scope: s } : s))
    const kept = this.#processes.filter((p) => !wished.some(({ scope }) => scope === p.scope))
    for (const process of kept) this.#end(process)
    const placed = wished.map((wish): Process => {
      const known = this.#processes.find((p) => p.scope === wish.scope && !p.ended)
      const incarnation = wish.incarnation ?? known?.incarnation ?? String(this.#generation)
      const ended = wish.state === 'ended'
      return {
        scope: wish.scope,
        wish,
        incarnation,
        ended,
        counts: (ended ? undefined : known?.counts) ?? new Map<string, Count>(),
        ...(known?.frozen && { frozen: known.frozen }),
      }
    })
    this.#processes = [...placed, ...kept]
  }

  reload(cut: boolean): void {
    this.#generation++
    const frozen = new Map([...this.#members].map(([key, member]) => [key, member.own]))
    this.#processes = this.#processes.flatMap((process): Process[] => {
      if (process.ended || process.frozen) return [process]
      const wish = withoutIncarnation(process.wish)
      const next: Process = {
        scope: process.scope,
        wish,
        incarnation: String(this.#generation),
        ended: false,
        counts: new Map(),
      }
      const busy = [...process.counts.values()].some((c) => c.active + c.queued > 0)
      if (!busy || cut) {
        process.counts.forEach(cutAll)
        return [next]
      }
      const scope = `${process.scope}-old-${this.#generation - 1}`
      return [next, { ...process, scope, wish: { ...wish, scope, old: true }, frozen }]
    })
    if (this.#capabilities.survivesReload) return
    for (const member of this.#members.values()) member.own = 'ready'
  }

  read(ref: MemberRef, sampledAt: number): Reading {
    const member = this.find(ref)
    const scopes = this.#processes.map((p) => this.#readScope(p, ref, member, sampledAt))
    if (!member) {
      return { ref, present: false, scopes: this.#capabilities.countsAfterRemove ? scopes : [] }
    }
    const { identity, address, port, weight, own, inherited, health } = member
    return {
      ref,
      present: true,
      identity,
      address,
      port,
      weight,
      own,
      ...(inherited && { inherited }),
      serves: serves(member),
      health,
      scopes,
    }
  }

  /** Those of the pools that there are. */
  readPools(pools: ReadonlySet<string>): readonly PoolReading[] {
    return [...pools].flatMap((pool) => {
      const members = this.#pools.get(pool)
      if (members === undefined) return []
      const serving = [...members.values()].filter(serves).length
      return [{ pool, serving, total: members.size, whenNone: this.#whenNone }]
    })
  }

  apply(change: Change): ChangeResult {
    const { ref } = change
    const missing = this.#missing(change)
    if (missing !== undefined) return rejected(ref, 'UNSUPPORTED', missing)
    const member = this.find(ref)
    if (change.kind === 'add') return this.#add(change, member)
    if (!member) return rejected(ref, 'NOT_FOUND', 'the fake has no such member')
    if (change.identity !== undefined && !isSameIdentity(change.identity, member.identity)) {
      return rejected(ref, 'CONFLICT', `another one has its name now (${member.identity})`)
    }
    switch (change.kind) {
      case 'hold':
        if (atLeast(member.own, change.to)) return { ref, status: 'unchanged' }
        return this.#set(member, change.to)
      case 'restore':
        if (member.own === change.to) return { ref, status: 'unchanged' }
        if (member.own !== change.expect) {
          return rejected(ref, 'CONFLICT', `expected ${change.expect}, found ${member.own}`)
        }
        return this.#set(member, change.to)
      case 'terminate':
        return { ref, status: 'applied', terminated: this.#cut(ref) }
      case 'remove':
        return this.#remove(ref)
      default:
        throw change satisfies never
    }
  }

  #remove(ref: MemberRef): ChangeResult {
    const { removal } = this.#capabilities
    const left = this.load(ref)
    if (removal === 'refuses' && left > 0)
      return rejected(
        ref,
        'CONFLICT',
        `it has ${left} in flight or queued, it is removed once they have ended`,
        true,
      )
    this.drop(ref)
    if (removal !== 'cuts') return { ref, status: 'applied' }
    return { ref, status: 'applied', terminated: this.#cut(ref) }
  }

  /** What the product cannot do of a change, and what it can do instead. */
  #missing(change: Change): string | undefined {
    const { ladder, terminate, remove, add } = this.#capabilities
    switch (change.kind) {
      case 'hold':
      case 'restore':
        if (ladder.includes(change.to)) return undefined
        return `no ${change.to} on this product; it has ${ladder.join(', ')}`
      case 'terminate':
        return terminate ? undefined : 'terminate is not possible; wait, or end the member itself'
      case 'remove':
        return remove ? undefined : 'remove is not possible; hold the member instead'
      case 'add':
        return add ? undefined : 'add is not possible; configure the member and restore it'
      default:
        throw change satisfies never
    }
  }

  #set(member: FakeMember, to: AdminState): ChangeResult {
    member.own = to
    if (to === 'maint' && this.#capabilities.maint === 'cuts') {
      return { ref: member.ref, status: 'applied', terminated: this.#cut(member.ref) }
    }
    return { ref: member.ref, status: 'applied' }
  }

  #add(change: Change & { readonly kind: 'add' }, found: FakeMember | undefined): ChangeResult {
    const { ref, address, port, weight } = change
    if (found) {
      const same = formatSocket(found.address, found.port) === formatSocket(address, port)
      if (same) return { ref, status: 'unchanged' }
      return rejected(ref, 'CONFLICT', 'the fake has that member already, at another address')
    }
    if (!this.#pools.has(ref.pool)) return rejected(ref, 'NOT_FOUND', 'the fake has no such pool')
    this.#place(ref, { address, port, weight: weight ?? 1 })
    return { ref, status: 'applied' }
  }

  #place(ref: MemberRef, at: Partial<Pick<FakeMember, 'address' | 'port' | 'weight'>> = {}) {
    const id = ++this.#ids
    this.#ever.add(refKey(ref))
    const address = at.address ?? `192.0.2.${id % 256}`
    const port = at.port ?? 80
    const { pool, member } = ref
    const placed: FakeMember = {
      ref: { pool, member },
      address,
      port,
      weight: at.weight ?? 1,
      identity: `${address}:${port}#${id}`,
      own: 'ready',
      inherited: undefined,
      health: 'up',
    }
    this.#members.set(refKey(ref), placed)
    this.#pools.get(pool)?.set(refKey(ref), placed)
    return placed
  }

  // eslint-disable-next-line complexity -- each optional field is there or not
  #readScope(
    process: Process,
    ref: MemberRef,
    member: FakeMember | undefined,
    sampledAt: number,
  ): LoadScope {
    const { wish } = process
    const key = refKey(ref)
    const counted = this.#capabilities.counts !== 'none'
    const state = process.ended ? 'ended' : (wish.state ?? 'read')
    const known = state === 'read' && counted ? process.counts.get(key) : undefined
    const frozen = process.frozen?.get(key)
    const admin = frozen ?? highest(member)
    // An old one that was drained when it was replaced lets no client in any more, whatever is wished since.
    const open = frozen === undefined || frozen === 'ready'
    const old = wish.old ?? process.frozen !== undefined
    return {
      scope: process.scope,
      incarnation: process.incarnation,
      state,
      sampledAt,
      active: known?.active ?? 0,
      queued: known?.queued ?? 0,
      ...(wish.pooled !== undefined && { pooled: wish.pooled }),
      ...(counted && { arrivals: known?.arrivals ?? 0 }),
      ...(admin !== undefined && state !== 'unread' && { admin }),
      inForce: wish.inForce ?? state !== 'unread',
      ...(!open && { open }),
      ...(wish.released !== undefined && { released: wish.released }),
      ...(wish.note !== undefined && { note: wish.note }),
      ...(old && { old }),
    }
  }

  #cut(ref: MemberRef): number {
    const cut = this.load(ref)
    for (const process of this.#processes) {
      const count = process.counts.get(refKey(ref))
      if (count) cutAll(count)
    }
    this.#endEmptyOld()
    return cut
  }

  #end(process: Process): void {
    process.ended = true
    process.counts.forEach(cutAll)
  }

  /** An old process lives as long as its last work. */
  #endEmptyOld(): void {
    for (const process of this.#processes) {
      const busy = [...process.counts.values()].some((c) => c.active + c.queued > 0)
      if (process.frozen && !busy) process.ended = true
    }
  }
}

/** The next process of a name gets an incarnation of its own. */
function withoutIncarnation(wish: FakeScope): FakeScope {
  const copy: { -readonly [K in keyof FakeScope]: FakeScope[K] } = { ...wish }
  delete copy.incarnation
  return copy
}

function cutAll(count: Count): void {
  count.active = 0
  count.queued = 0
}

/** @param retryable - whether the reason passes by itself; most conflicts here are a client's choice */
function rejected(ref: MemberRef, code: ErrorCode, text: string, retryable = false): ChangeResult {
  const data = { ref, provider: 'fake', retryable }
  const error = new DrainableError(code, `${formatRef(ref)}: ${text}`, data)
  return { ref, status: 'rejected', error }
}
