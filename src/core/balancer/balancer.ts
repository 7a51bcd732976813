import { wallOf, type Clock } from '../../provider/clock.js'
import type { Change, ChangeResult, DrainableProvider, MemberRef } from '../../provider/contract.js'
import { refKey } from '../../provider/member-ref.js'
import type { Effect, FreeInput, Order } from '../member/input.js'
import { newClaim, type Claim, type MemberRecord } from '../member/record.js'
import { step } from '../member/step.js'
import { isDown } from '../member/wanted.js'
import { companionsOf, type Denial, denialOf, type FloorAsk, floorOf, shortOf } from './floor.js'
import { homeOf } from './home.js'
import { LeftTickets, Newest, Writers } from './memory.js'
import { type Look, readingOf, readingsOf, type SeenLook } from './look/look.js'
import { schedulerOf, type Scheduler } from './look/scheduler.js'
import { tell, type Laying, type Owner, type Wanted } from './owner.js'
import { Records } from './records.js'
import { Sending } from './sending.js'

/** After these no look is asked for at once. An answer is one of many: the look comes once its whole call has ended. */
const ASKS_NO_LOOK: ReadonlySet<FreeInput['type']> = new Set([
  'look',
  'unread',
  'denied',
  'sending',
  'answer',
])
/**
 * One balancer in this process, whichever provider objects lead to it: the record of each member that anything is wanted of,
 * and all that is sent. A member is worked on by nobody else.
 */
export class Balancer {
  readonly left = new LeftTickets()
  readonly writers = new Writers()
  /** What is under way. */
  readonly sending: Sending
  readonly #clock: Clock
  readonly #records: Records
  /** The number of each provider object. */
  readonly #views = new WeakMap<DrainableProvider, number>()
  /** What each has seen last. */
  readonly #looks = new Map<number, SeenLook>()
  readonly #newest = new Newest()
  readonly #calls = new Set<Owner>()
  /** When a change of each member was answered last, while any call is open. */
  readonly #answered = new Map<string, number>()
  readonly #concerned = new Set<Owner>()
  #wanted: Wanted[] = []
  #asking: Wanted[] = []
  #seq = 0
  #id = 0
  #depth = 0
  #isSoon = false

  constructor(clock: Clock) {
    this.#clock = clock
    this.#records = new Records(clock)
    this.sending = new Sending(this, clock)
  }

  scheduler(provider: DrainableProvider): Scheduler {
    return schedulerOf(provider, this.#clock)
  }

  // --- calls and claims

  /** Opens a call. @returns its number: a later one is higher */
  open(call: Owner): number {
    if (this.#calls.size === 0) this.#records.sweep()
    this.#calls.add(call)
    return (this.#seq += 1)
  }

  close(call: Owner): void {
    this.#calls.delete(call)
    if (this.#calls.size > 0) return
    this.#newest.clear()
    this.#answered.clear()
    this.#looks.clear()
  }

  get records(): ReadonlyMap<string, MemberRecord> {
    return this.#records.byMember
  }

  record(ref: MemberRef): MemberRecord | undefined {
    return this.#records.of(ref)
  }

  claim(ref: MemberRef, id: number): Claim | undefined {
    return this.#records.claim(ref, id)
  }

  /** Whether a drain of this process holds the member, or wants to. */
  isClaimed(ref: MemberRef): boolean {
    return this.record(ref)?.claims.some(isDown) === true
  }

  /** Lays a claim on a member. A later call that wants the opposite has ended it already. */
  lay(owner: Owner, ref: MemberRef, { seq, start, left }: Laying): number {
    const key = refKey(ref)
    const id = (this.#id += 1)
    const claim = newClaim({ ...start, id, view: this.#viewOf(owner.provider) })
    this.#records.begin(owner, ref, claim, this.#answered.get(key) ?? -Infinity)
    const by = this.#newest.against(key, { seq, claim })
    if (by === undefined) {
      this.sending.limit(ref, claim)
      this.#newest.note(key, { seq, claim })
    }
    this.take(ref, { type: 'laid', claim, left, by })
    return id
  }

  /** Drops a claim and undoes it. */
  undo(ref: MemberRef, order: Extract<Order, { readonly type: 'undo' }>): void {
    const claim = this.claim(ref, order.claim)
    if (claim === undefined) return
    const undone = { ...claim, goal: order.goal }
    this.sending.limit(ref, undone)
    this.take(ref, order)
  }

  /** See {@link Records.leave}. */
  leave(ref: MemberRef, id: number, handle: object): boolean {
    return this.#records.leave(ref, id, handle)
  }

  /** See {@link Records.takeUp}. */
  takeUp(owner: Owner, ref: MemberRef, id: number): boolean {
    return this.#records.takeUp(owner, ref, id)
  }

  // --- steps

  /** Passes a look to the records of these members; what they ask for goes out in one call. */
  see(owner: Owner, refs: readonly MemberRef[], look: Look): void {
    const view = this.#viewOf(owner.provider)
    if (look.error === undefined) {
      this.#looks.set(view, look)
      this.showLeft(owner.provider, look)
    }
    this.together(() => {
      for (const ref of refs) this.#seeOne(ref, view, look)
    })
  }

  /** Shows a look, whatever it was taken for, to the claims that calls have let go of. */
  showLeft(by: DrainableProvider, look: SeenLook): void {
    const readings = readingsOf(look.snapshot)
    for (const ref of this.#records.leftBehind(look))
      if (readings.has(refKey(ref))) this.#seeOne(ref, this.#viewOf(by), look, true)
  }

  /** @param isOthers - by whatever object of the balancer it is seen */
  #seeOne(ref: MemberRef, view: number, look: Look, isOthers = false): void {
    const record = this.record(ref)
    if (record === undefined) return
    if (!isOthers && !record.claims.some((claim) => claim.view === view)) return
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
      const { keepReady = 0 } = this.#records.ownerOf(claim.id) ?? {}
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
      this.#records.byMember.set(key, stepped.record)
      this.sending.endLimit(record, stepped.record)
      for (const { id } of stepped.record.claims) {
        const owner = this.#records.ownerOf(id)
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
      this.#answered.set(key, this.#clock.now())
      owner.note()
      this.#records.tidy(change.ref)
    })
  }

  #carryOut(ref: MemberRef, effect: Effect): void {
    const owner = this.#records.ownerOf(effect.claim)
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
    for (const [owner, changes] of Map.groupBy(wanted, ({ claim }) => this.#records.ownerOf(claim)))
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
      const byOwner = [...Map.groupBy(asked, ({ claim }) => this.#records.ownerOf(claim))]
      for (const [owner, changes] of byOwner.sort(([, a], [, b]) => oldestOf(a) - oldestOf(b))) {
        if (owner === undefined) continue
        for (const { claim } of changes) asking.delete(claim)
        const look = this.#looks.get(this.#viewOf(owner.provider))
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
    const owners = others.flatMap(({ id }) => this.#records.ownerOf(id) ?? [])
    for (const one of new Set([owner, ...owners])) tell(one, true)
  }

  #viewOf(provider: DrainableProvider): number {
    const view = this.#views.get(provider) ?? (this.#id += 1)
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
