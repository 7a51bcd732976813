import type { AdminState, Change, ChangeResult, Clock, Health, MemberRef } from 'drainable'
import { noteBase, noteUndo, resumed, undone } from './bases.js'
import { BalancerProcess, type Fact, type Work } from './balancer-process.js'
import type { Figures } from '../figures.js'
import { keyOf, RANK, refused, type Member, type Setter, type TruthListener } from './member.js'
import type { Product } from './product.js'
import type { Random } from '../random.js'
import type { SentChange } from '../judge/sent-change.js'

/** A hidden load balancer: what is really there, whatever a provider says of it. */
export class Truth {
  readonly clock: Clock
  readonly product: Product
  readonly members = new Map<string, Member>()
  processes: BalancerProcess[] = []
  readonly pools: ReadonlyMap<string, readonly string[]>
  readonly figures: Figures
  readonly tell: (text: string) => void
  listener: TruthListener | undefined
  /** Threads are late: work that leaves the queue is in no counter for a while. Undefined: they never are. */
  lateThreads: Random | undefined
  readonly #random: Random
  #generation = 0
  #identities = 0
  #stateFile = new Map<string, Pick<Member, 'own' | 'setter'>>()

  constructor(
    clock: Clock,
    product: Product,
    pools: ReadonlyMap<string, readonly string[]>,
    random: Random,
    figures: Figures,
    tell: (text: string) => void,
  ) {
    this.clock = clock
    this.product = product
    this.pools = pools
    this.#random = random
    this.figures = figures
    this.tell = tell
    for (const [pool, names] of pools) for (const member of names) this.#place({ pool, member })
    const count = product.topology === 'units' ? 2 : 1
    for (let i = 0; i < count; i += 1) this.#spawn()
  }

  member(key: string): Member {
    const found = this.members.get(key)
    if (found === undefined) throw new Error(`no member ${key}`)
    return found
  }

  current(): BalancerProcess[] {
    return this.processes.filter(({ role }) => role === 'current')
  }

  alive(): BalancerProcess[] {
    return this.processes.filter((process) => process.alive)
  }

  /** Everything that is truly held for a member. */
  load(key: string): number {
    return this.alive().reduce((sum, process) => sum + process.load(key), 0)
  }

  facts(key: string): ReadonlyMap<string, Fact> {
    return new Map(this.alive().map((process) => [process.name, process.fact(key)]))
  }

  serves(member: Member): boolean {
    return member.present && member.own === 'ready' && member.health !== 'down'
  }

  inPool(pool: string): Member[] {
    return [...this.members.values()].filter(({ ref }) => ref.pool === pool)
  }

  /** Notes who serves at this moment; called before and after everything that can change it. */
  noteServing(): void {
    for (const member of this.members.values())
      if (this.serves(member)) member.servedAt = this.clock.now()
  }

  // --- work ---

  admits(process: BalancerProcess, key: string, persistent: boolean): boolean {
    const member = this.member(key)
    if (!process.alive || !member.present || member.health === 'down') return false
    const state = process.stateOf(key)
    return state === 'ready' || (state === 'drain' && persistent)
  }

  /** Work begins, in one or two parts; each part's end is asked for by time. */
  begin(process: BalancerProcess, key: string, phase: Work['phase'], ms: number, then = 0): void {
    const work: Work = { key, phase, since: this.clock.now(), over: false }
    process.works.add(work)
    // A queue forms only where the member is full: what fills it has begun, and was counted. Where nothing is seen at work here,
    // that was short.
    const isFilled = this.lateThreads !== undefined && process.count(key, 'active') === 0
    if (phase !== 'queued' || isFilled) process.arrive(key, this.clock.now())
    this.listener?.arrived(key, process)
    const end = (): void => {
      if (work.over) return
      process.end(work)
      this.endEmpty()
    }
    const run = (): void => {
      if (work.over || phase === 'active') {
        end()
        return
      }
      // bound already: no state keeps it out any more
      work.phase = 'active'
      process.arrive(key, this.clock.now())
      this.clock.setTimeout(end, then)
    }
    this.clock.setTimeout(() => {
      const late = phase === 'queued' && !work.over ? this.#lateness() : 0
      if (late === 0) {
        run()
        return
      }
      this.figures.add('world: work that has left the queue and waits for its thread')
      work.phase = 'slot'
      this.clock.setTimeout(run, late)
    }, ms)
  }

  /** How late a thread is, below the time for which the product says that it can hide work. */
  #lateness(): number {
    const { blind } = this.product.capabilities
    return Math.round((this.lateThreads?.next() ?? 0) * blind * 0.95)
  }

  /** An old process lives as long as its last work and its last client. */
  endEmpty(): void {
    for (const process of this.processes) {
      if (process.role === 'old' && process.works.size === 0 && process.attached === 0)
        this.#end(process)
    }
  }

  #end(process: BalancerProcess): void {
    process.cut()
    process.role = 'ended'
    process.endedAt = this.clock.now()
    this.tell(`process ${process.name} has ended`)
  }

  // --- what others do ---

  saveStateFile(): void {
    this.#stateFile = new Map(
      [...this.members].map(([key, { own, setter }]) => [key, { own, setter }]),
    )
  }

  /** A new worker beside the old one, or a unit that starts anew. */
  reload(how: 'reload' | 'restart'): void {
    this.figures.add(`world: ${how}`)
    this.noteServing()
    const { product } = this
    if (product.topology === 'units') {
      const unit = this.#random.pick(this.current())
      this.#generation += 1
      unit.restart(`i${this.#generation}`)
      this.tell(`unit ${unit.name} restarts`)
      for (const member of this.members.values()) {
        this.#interfere(member, 'a unit restarted', true)
        this.#take(unit, member)
      }
      this.noteServing()
      return
    }
    const [old] = this.current()
    if (old === undefined) return
    const forgets =
      product.afterReload === 'either'
        ? this.#random.chance(0.5)
        : product.afterReload === 'forgets'
    this.tell(`${how}: ${old.name} is replaced, states ${forgets ? 'forgotten' : 'from the file'}`)
    if (how === 'reload') old.role = 'old'
    else this.#end(old)
    if (product.capabilities.survivesReload) this.saveStateFile()
    for (const member of this.members.values()) {
      this.#interfere(member, 'a reload', true)
      const kept = forgets ? undefined : this.#stateFile.get(member.key)
      if (kept !== undefined) {
        member.own = kept.own
        member.setter = kept.setter
      } else {
        member.own = 'ready'
        member.setter = { by: 'reload', at: this.clock.now() }
      }
    }
    this.#spawn()
    this.endEmpty()
    this.noteServing()
  }

  operator(key: string, to: AdminState): void {
    const member = this.member(key)
    if (!member.present || member.own === to) return
    this.figures.add(`world: operator sets ${to}`)
    this.tell(`an operator sets ${key} to ${to} (was ${member.own})`)
    this.noteServing()
    for (const drain of member.bases.keys()) member.bases.set(drain, 'unclear')
    this.#interfere(member, `an operator set ${to}`, false)
    this.#set(member, to, { by: 'operator', at: this.clock.now() })
    this.noteServing()
  }

  setHealth(key: string, health: Health): void {
    const member = this.member(key)
    if (member.health === health) return
    this.noteServing()
    this.tell(`health of ${key}: ${health}`)
    member.health = health
    this.#interfere(member, 'health', false)
    this.noteServing()
  }

  /** Its name does not resolve for a while. It does its work, as a client that knows its address goes on. */
  loseAddress(key: string, ms: number): void {
    this.figures.add('world: lost address')
    this.tell(`the name of ${key} does not resolve for ${ms} ms`)
    this.member(key).namelessUntil = this.clock.now() + ms
  }

  /** Taken out of its pool by others; back after a while as another one, or at once. */
  replace(key: string, after: number): void {
    const member = this.member(key)
    if (!member.present) return
    this.figures.add('world: replaced')
    this.tell(`${key} is taken out by others`)
    this.drop(member, 'removed by others')
    this.clock.setTimeout(() => {
      this.noteServing()
      if (member.present) return
      this.#renew(member)
      this.tell(`${key} is another one now: ${member.identity}`)
      this.#interfere(member, 'another identity', true)
      this.noteServing()
    }, after)
  }

  drop(member: Member, why: string | undefined): void {
    this.noteServing()
    member.present = false
    if (why !== undefined) this.#interfere(member, why, true)
    for (const process of this.current()) process.cut(member.key)
  }

  #renew(member: Member): void {
    this.#identities += 1
    member.address = `192.0.2.${this.#identities}`
    member.identity = `${member.address}:80#${this.#identities}`
    member.identities.push({ identity: member.identity, from: this.clock.now() })
    member.present = true
    member.own = 'ready'
    member.setter = { by: 'start', at: this.clock.now() }
    member.bases = new Map()
    member.begun = new Map()
    member.changedBy = new Set()
    member.undoneAt = new Map()
    for (const process of this.current()) process.admin.delete(member.key)
  }

  #interfere(member: Member, what: string, reload: boolean): void {
    member.foreignAt = this.clock.now()
    if (reload) member.reloadedAt = this.clock.now()
    this.listener?.interfered(member.key, what)
  }

  // --- what the library asks for ---

  /** Carries a change out, as a product does that is asked for it now. */
  apply(sent: SentChange): ChangeResult {
    const { change } = sent
    const member = this.members.get(keyOf(change.ref))
    this.listener?.executes(sent, member)
    const was = member?.own ?? 'ready'
    this.noteServing()
    const result = this.#apply(sent, change, member)
    this.noteServing()
    sent.executedAt = this.clock.now()
    sent.effect = result.status
    this.listener?.executed(sent, member, result, was)
    return result
  }

  #apply(sent: SentChange, change: Change, member: Member | undefined): ChangeResult {
    const { ref } = change
    const { ladder, terminate, remove } = this.product.capabilities
    if (member?.present !== true) return refused(ref, 'NOT_FOUND', 'no such member')
    if (change.identity !== undefined && change.identity !== member.identity)
      return refused(ref, 'CONFLICT', 'another one has its name')
    const setter: Setter = { by: 'library', at: this.clock.now(), change: sent }
    switch (change.kind) {
      case 'hold':
        if (!ladder.includes(change.to)) return refused(ref, 'UNSUPPORTED', `no ${change.to}`)
        noteBase(sent, member, RANK[member.own] < RANK[change.to])
        if (RANK[member.own] >= RANK[change.to]) return { ref, status: 'unchanged' }
        return this.#set(member, change.to, setter)
      case 'restore':
        noteUndo(sent, member, change.to, this.clock.now())
        if (member.own === change.to) return { ref, status: 'unchanged' }
        if (member.own !== change.expect)
          return refused(ref, 'CONFLICT', `expected ${change.expect}, found ${member.own}`)
        return this.#set(member, change.to, setter)
      case 'terminate':
        if (!terminate) return refused(ref, 'UNSUPPORTED', 'no terminate')
        return { ref, status: 'applied', terminated: this.#cut(member.key) }
      case 'remove':
        if (!remove) return refused(ref, 'UNSUPPORTED', 'no remove')
        return this.#remove(member)
      case 'add':
        return refused(ref, 'UNSUPPORTED', 'no add')
      default:
        throw change satisfies never
    }
  }

  #remove(member: Member): ChangeResult {
    const { ref, key } = member
    const { removal } = this.product.capabilities
    const isAtWork = this.alive().some(({ works }) => [...works].some((work) => work.key === key))
    if (removal === 'refuses' && isAtWork)
      return refused(ref, 'CONFLICT', 'it has connections, ask again later')
    const cut = removal === 'cuts' ? { terminated: this.#cut(key) } : {}
    this.drop(member, undefined)
    return { ref, status: 'applied', ...cut }
  }

  /** A drain goes on from a ticket that was kept before it was undone. */
  resumes(keys: ReadonlySet<string>, author = ''): void {
    for (const key of keys) resumed(this.member(key), author)
  }

  /** What a drain changes from now on it changes anew. */
  isUndone(member: Member, author: string): void {
    undone(member, author, this.clock.now())
  }

  #set(member: Member, to: AdminState, setter: Setter): ChangeResult {
    const was = member.own
    member.sets.push({ to, setter })
    member.own = to
    member.setter = setter
    let terminated = 0
    for (const process of this.current()) terminated += this.#take(process, member)
    if (was === 'maint' && this.product.checked && member.health === 'up') {
      member.health = 'unknown'
      this.clock.setTimeout(
        () => {
          if (member.health === 'unknown') member.health = 'up'
        },
        this.#random.int(50, 600),
      )
    }
    return { ref: member.ref, status: 'applied', ...(terminated > 0 ? { terminated } : {}) }
  }

  /** A process takes the state, at once or a little later. */
  #take(process: BalancerProcess, member: Member): number {
    const take = (): number => {
      if (process.role !== 'current' || !member.present) return 0
      if (this.product.lie !== 'holds') process.admin.set(member.key, member.own)
      const cuts = member.own === 'maint' && this.product.capabilities.maint === 'cuts'
      return cuts ? process.cut(member.key) : 0
    }
    const wait = this.product.takes > 0 ? this.#random.int(0, this.product.takes) : 0
    if (wait === 0) return take()
    this.clock.setTimeout(take, wait)
    return 0
  }

  #cut(key: string): number {
    const cut = this.alive().reduce((sum, process) => sum + process.cut(key), 0)
    this.endEmpty()
    return cut
  }

  #place(ref: MemberRef): void {
    const at = this.clock.now()
    const member: Member = {
      ref,
      key: keyOf(ref),
      identity: '',
      address: '',
      present: true,
      own: 'ready',
      setter: { by: 'start', at },
      bases: new Map(),
      begun: new Map(),
      changedBy: new Set(),
      undoneAt: new Map(),
      sets: [],
      health: this.product.checked ? 'up' : 'unchecked',
      servedAt: at,
      foreignAt: -Infinity,
      reloadedAt: -Infinity,
      identities: [],
    }
    this.members.set(member.key, member)
    this.#renew(member)
  }

  #spawn(): void {
    this.#generation += 1
    const name = `p${this.#generation}`
    const process = new BalancerProcess(name, `i${this.#generation}`, this.clock.now())
    process.left = (key) => this.listener?.left?.(key)
    for (const member of this.members.values()) process.admin.set(member.key, member.own)
    this.processes.push(process)
  }
}
