import { wallOf, type Clock } from '../../provider/clock.js'
import type { Change, ChangeResult, DrainableProvider, MemberRef } from '../../provider/contract.js'
import { refKey } from '../../provider/member-ref.js'
import type { Effect, FreeInput, Order } from '../member/input.js'
import { isLive, newClaim, newRecord, type Claim, type MemberRecord } from '../member/record.js'
import { step } from '../member/step.js'
import { isDown } from '../member/wanted.js'
import { companionsOf, type Denial, denialOf, type FloorAsk, floorOf, shortOf } from './floor.js'
import { homeOf } from './home.js'
import { LeftRecords, LeftTickets, Newest, Touches, Writers } from './memory.js'
import { type Look, readingOf, type SeenLook } from './look/look.js'
import { schedulerOf, type Scheduler } from './look/scheduler.js'
import { tell, type Laying, type Owner, type Wanted } from './owner.js'
import { Sending } from './sending.js'

/** What one provider object has seen last. */
interface View {
  readonly id: number
  look?: SeenLook
}

/** After these no look is asked for at once. An answer is one of many: the look comes once its whole call has ended. */
const ASKS_NO_LOOK: ReadonlySet<FreeInput['type']> = new Set([
  'look',
  'unread',
  'denied',
  'sending',
  'answer',
])
/** How long a lost change is remembered beyond its time where nobody looks, in milliseconds. */
const REMEMBERED = 30_000

/**
 * One balancer in this process, whichever provider objects lead to it: the record of each member that anything is wanted of,
 * and all that is sent. A member is worked on by nobody else.
 */
export class Balancer {
  readonly records = new Map<string, MemberRecord>()
  readonly left = new LeftTickets()
  readonly writers = new Writers()
  readonly leftRecords: LeftRecords
  /** What is under way. */
  readonly sending: Sending
  readonly #clock: Clock
  readonly #owners = new Map<number, Owner>()
  readonly #views = new Map<DrainableProvider, View>()
  readonly #newest = new Newest()
  readonly #calls = new Set<Owner>()
  /** A call that let go is not the last to know of a member that was touched since. */
  readonly #touches = new Touches()
  readonly #concerned = new Set<Owner>()
  #wanted: Wanted[] = []
  #asking: Wanted[] = []
  #lateBound = 0
  #seq = 0
  #id = 0
  #depth = 0
  #isSoon = false

  constructor(clock: Clock) {
    this.#clock = clock
    this.sending = new Sending(this, clock)
    this.leftRecords = new LeftRecords(clock)
  }

  scheduler(provider: DrainableProvider): Scheduler {
    return schedulerOf(provider, this.#clock)
  }

  // --- calls and claims

  /** Opens a call. @returns its number: a later one is higher */
  open(call: Owner): number {
    if (this.#calls.size === 0) this.#sweep()
    this.#calls.add(call)
    return (this.#seq += 1)
  }

  close(call: Owner): void {
    this.#calls.delete(call)
    if (this.#calls.size > 0) return
    this.#newest.clear()
    this.#views.clear()
  }

  record(ref: MemberRef): MemberRecord | undefined {
    return this.records.get(refKey(ref))
  }

  claim(ref: MemberRef, id: number): Claim | undefined {
    return this.record(ref)?.claims.find((claim) => claim.id === id)
  }

  /** Whether a drain of this process holds the member, or wants to. */
  isClaimed(ref: MemberRef): boolean {
    return this.record(ref)?.claims.some(isDown) === true
  }

  /** A count that moves when a claim is laid on the member, and when a change of it is answered. */
  touches(ref: MemberRef): number {
    return this.#touches.of(refKey(ref))
  }

  /** Lays a claim on a member. A later call that wants the opposite has ended it already. */
  lay(owner: Owner, ref: MemberRef, { seq, start, left }: Laying): number {
    const key = refKey(ref)
    const id = (this.#id += 1)
    const claim = newClaim({ ...start, id, view: this.#viewOf(owner.provider).id })
    const isWatch = claim.goal.kind === 'watch'
    this.#owners.set(id, owner)
    this.#lateBound = Math.max(this.#lateBound, claim.policy.capabilities.lateBound)
    if (!this.records.has(key)) this.records.set(key, this.#begun(ref, claim.startedAt))
    if (!isWatch) {
      this.#touches.touch(key)
      this.leftRecords.forget(ref)
    }
    const by = this.#newest.against(key, { seq, claim })
    // One that goes on with a ticket may be over for its member.
    if (by === undefined && isLive(claim)) {
      this.sending.limit(ref, claim)
      this.#newest.note(key, { seq, claim })
    }
    this.take(ref, { type: 'laid', claim, left, by })
    return id
  }

  /** A record that begins with a claim; the first look of its call can be older than the answer to an earlier change. */
  #begun(ref: MemberRef, at: number): MemberRecord {
    const record = newRecord(ref, at)
    const answeredAt = Math.max(record.ledger.answeredAt, this.#touches.answeredAt(refKey(ref)))
    return { ...record, ledger: { ...record.ledger, answeredAt } }
  }

  /** Drops a claim and undoes it. */
  undo(ref: MemberRef, order: Extract<Order, { readonly type: 'undo' }>): void {
    const claim = this.claim(ref, order.claim)
    if (claim === undefined) return
    const undone = { ...claim, goal: order.goal }
    this.sending.limit(ref, undone)
    this.take(ref, order)
  }

  /** Forgets a claim of a call that is over. */
  forget(ref: MemberRef, id: number): void {
    const key = refKey(ref)
    const record = this.records.get(key)
    this.#owners.delete(id)
    if (record === undefined) return
    const claims = record.claims.filter((claim) => claim.id !== id)
    const views = new Map(
      [...record.views].filter(([view]) => claims.some((one) => one.view === view)),
    )
    this.records.set(key, { ...record, claims, views: claims.length === 0 ? record.views : views })
    this.#tidy(key)
  }

  /** A record goes with its last claim, or once no change of ours can come any more. */
  #tidy(key: string): void {
    const record = this.records.get(key)
    if (record === undefined || record.claims.length > 0) return
    const { pending, late } = record.ledger
    if (pending !== null) return
    if (late.length === 0) {
      this.records.delete(key)
      return
    }
    try {
      const now = this.#clock.now()
      const timed = late.map((one) => ({ ...one, until: one.until ?? now + this.#lateBound }))
      this.records.set(key, { ...record, ledger: { ...record.ledger, late: timed } })
    } catch {
      this.records.delete(key) // the caller's clock throws: nobody can wait by it
    }
  }

  /** Forgets lost changes that nobody has looked after since their time was over. */
  #sweep(): void {
    const now = this.#clock.now()
    for (const [key, { claims, ledger }] of this.records) {
      const isOver = ledger.late.every(({ until }) => until !== null && until + REMEMBERED < now)
      if (claims.length === 0 && ledger.pending === null && isOver) this.records.delete(key)
    }
  }

  // --- steps

  /** Passes a look to the records of these members; what they ask for goes out in one call. */
  see(owner: Owner, refs: readonly MemberRef[], look: Look): void {
    const view = this.#viewOf(owner.provider)
    if (look.error === undefined) {
      view.look = look
      this.leftRecords.see(owner.provider, look)
    }
    this.together(() => {
      for (const ref of refs) this.#seeOne(ref, view, look)
    })
  }

  #seeOne(ref: MemberRef, { id: view }: View, look: Look): void {
    const record = this.record(ref)
    if (record === undefined || !record.claims.some((claim) => claim.view === view)) return
    const { askedAt, took } = look
    const { last = null, unread = null } = record.views.get(view) ?? {}
    if (look.error !== undefined) {
      if (unread?.error !== look.error)
        this.take(ref, { type: 'unread', view, error: look.error, askedAt })
      return
    }
    const { snapshot } = look
    const reading = readingOf(snapshot, ref)
    // Calls can share a look, and a push can be older than it.
    if (last !== null && (last.askedAt > askedAt || last.reading === reading)) return
    const { ended } = snapshot
    const random = Math.random()
    const floor = floorOf(record, reading, (claim) => {
      const { keepReady = 0 } = this.#owners.get(claim.id) ?? {}
      return this.#ask(look, keepReady)
    })
    this.take(ref, { type: 'look', view, reading, askedAt, took, ended, random, floor })
    this.sending.limitLowered(ref, reading)
  }

  /** Takes one input of one member. */
  take(ref: MemberRef, input: FreeInput): void {
    const key = refKey(ref)
    this.together(() => {
      const record = this.records.get(key)
      if (record === undefined) return
      if (!ASKS_NO_LOOK.has(input.type)) this.#isSoon = true
      const at = this.#clock.now()
      const stepped = step(record, { ...input, at, wall: wallOf(this.#clock) })
      this.records.set(key, stepped.record)
      this.sending.endLimit(record, stepped.record)
      for (const { id } of stepped.record.claims) {
        const owner = this.#owners.get(id)
        if (owner !== undefined) this.#concerned.add(owner)
      }
      for (const effect of stepped.effects) this.#carryOut(ref, effect)
    })
  }

  /** Takes the answer to a change of a call. */
  answered(owner: Owner, change: Change, result: ChangeResult): void {
    const key = refKey(change.ref)
    this.together(() => {
      this.take(change.ref, { type: 'answer', change, result })
      const touches = this.#touches.of(key)
      this.#touches.touch(key, this.#clock.now())
      owner.note(touches)
      this.#tidy(key)
    })
  }

  #carryOut(ref: MemberRef, effect: Effect): void {
    const owner = this.#owners.get(effect.claim)
    switch (effect.type) {
      case 'emit':
        owner?.emit(effect.event)
        return
      case 'check':
        owner?.check(ref)
        return
      case 'lost':
        owner?.lost(effect.error)
        return
      case 'send':
        if (effect.first) this.#asking.push(effect)
        else this.#wanted.push(effect)
        return
      default:
        effect satisfies never
    }
  }

  /** Runs a part. What it asks for is sent, and the calls that it concerns hear of it, once it is over. */
  together(part: () => void): void {
    this.#depth += 1
    try {
      part()
    } finally {
      this.#depth -= 1
      if (this.#depth === 0) this.#flush()
    }
  }

  #flush(): void {
    this.#askFloor()
    const wanted = this.#wanted
    this.#wanted = []
    for (const [owner, changes] of Map.groupBy(wanted, ({ claim }) => this.#owners.get(claim)))
      if (owner !== undefined)
        void this.sending.send(owner, changes).catch((thrown: unknown) => owner.broken(thrown))
    const concerned = [...this.#concerned]
    this.#concerned.clear()
    const isSoon = this.#isSoon
    this.#isSoon = false
    for (const owner of concerned) tell(owner, isSoon)
  }

  // --- the floor

  #ask(look: SeenLook, keepReady: number, asking?: ReadonlySet<number>): FloorAsk {
    const base = { records: this.records, look, keepReady, now: this.#clock.now() }
    return asking === undefined ? base : { ...base, asking }
  }

  /**
   * Asks the floor for the first holds of each call, the oldest call first: all of those that a call asks for are granted, or none,
   * because one that holds half of its pools keeps places that help nobody.
   */
  #askFloor(): void {
    while (this.#asking.length > 0) {
      const asked = this.#asking
      this.#asking = []
      const asking = new Set(asked.map(({ claim }) => claim))
      const byOwner = [...Map.groupBy(asked, ({ claim }) => this.#owners.get(claim))]
      for (const [owner, changes] of byOwner.sort(([, a], [, b]) => oldestOf(a) - oldestOf(b))) {
        if (owner === undefined) continue
        for (const { claim } of changes) asking.delete(claim)
        const { look } = this.#viewOf(owner.provider)
        const denied =
          look === undefined
            ? undefined
            : denialOf(changes, look, this.#ask(look, owner.keepReady, asking))
        if (denied === undefined) this.#wanted.push(...changes)
        else {
          for (const { claim } of changes) asking.add(claim)
          this.#deny(owner, changes, denied)
        }
      }
    }
  }

  #deny(owner: Owner, changes: readonly Wanted[], denied: (ref: MemberRef) => Denial): void {
    if (changes.some(({ change }) => !denied(change.ref).isFinal)) owner.postponed()
    this.together(() => {
      for (const { claim, change } of changes)
        this.take(change.ref, { type: 'denied', claim, ...denied(change.ref) })
    })
  }

  /** The members, of those to be taken together, for which there is no place, and why. */
  shortOf(
    refs: readonly MemberRef[],
    look: SeenLook,
    keepReady: number,
  ): readonly (Denial & { readonly ref: MemberRef })[] {
    return shortOf(refs, look, this.#ask(look, keepReady))
  }

  /** The members of the same pools that claims take. */
  companions(refs: readonly MemberRef[]): readonly MemberRef[] {
    return companionsOf(this.records, refs, this.#clock.now())
  }

  /** A call of changes has ended: only another look shows its own claims, and others on these members, what is now. */
  ended(owner: Owner, changes: readonly Change[]): void {
    const others = changes.flatMap(({ ref }) => this.record(ref)?.claims ?? [])
    const owners = others.flatMap(({ id }) => this.#owners.get(id) ?? [])
    for (const one of new Set([owner, ...owners])) tell(one, true)
  }

  #viewOf(provider: DrainableProvider): View {
    const known = this.#views.get(provider)
    if (known !== undefined) return known
    const view = { id: (this.#id += 1) }
    this.#views.set(provider, view)
    return view
  }
}

/** The first of these claims to be laid. */
function oldestOf(changes: readonly Wanted[]): number {
  return changes[0]?.claim ?? 0
}

/** The balancer behind a provider object, by a clock: in tests one balancer can have several. */
export function balancerOf({ name, instance }: DrainableProvider, clock: Clock): Balancer {
  const byClock = homeOf('balancers', () => new WeakMap<Clock, Map<string, Balancer>>())
  const balancers = byClock.get(clock) ?? new Map<string, Balancer>()
  byClock.set(clock, balancers)
  const key = `${name}\0${instance}`
  const balancer = balancers.get(key) ?? new Balancer(clock)
  balancers.set(key, balancer)
  return balancer
}
