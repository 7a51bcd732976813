import type { Clock } from '../../provider/clock.js'
import type { MemberRef } from '../../provider/contract.js'
import { refKey } from '../../provider/member-ref.js'
import { type Claim, type MemberRecord, newRecord, owes } from '../member/record.js'
import { isUndo } from '../member/wanted.js'
import type { SeenLook } from './look/look.js'
import type { Owner } from './owner.js'

/** How long a lost change is remembered beyond its time where nobody looks, in milliseconds. */
const REMEMBERED = 30_000

/** A claim, by its member. */
interface Place {
  readonly ref: MemberRef
  readonly id: number
}

/**
 * The records of one balancer, and which call has each claim. A claim that a call has let go of with something of ours on the
 * member stays in its record and wants nothing: its handle can still undo that, so what looks show in the meantime counts. It
 * goes with its handle, or with a later claim on the member.
 */
export class Records {
  readonly byMember = new Map<string, MemberRecord>()
  readonly #clock: Clock
  readonly #owners = new Map<number, Owner>()
  /** Claims that were let go of. */
  readonly #left = new Map<number, MemberRef>()
  readonly #gone = new FinalizationRegistry<Place>(({ ref, id }) => this.#forget(ref, id))
  /** The newest look that they were shown: all calls on a provider share it, and each tells of it. */
  #shown: SeenLook | undefined
  #lateBound = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  of(ref: MemberRef): MemberRecord | undefined {
    return this.byMember.get(refKey(ref))
  }

  claim(ref: MemberRef, id: number): Claim | undefined {
    return this.of(ref)?.claims.find((claim) => claim.id === id)
  }

  ownerOf(id: number): Owner | undefined {
    return this.#owners.get(id)
  }

  /**
   * Begins a record for a new claim, if there is none. What earlier calls have left on the member is its state from now on, and
   * nobody's to undo; a call that only watches changes nothing of that.
   *
   * @param answeredAt - when a change of the member was answered last: the first look of a call can be older
   */
  begin(owner: Owner, ref: MemberRef, claim: Claim, answeredAt: number): void {
    this.#owners.set(claim.id, owner)
    this.#lateBound = Math.max(this.#lateBound, claim.policy.capabilities.lateBound)
    if (claim.goal.kind !== 'watch')
      for (const { id } of this.of(ref)?.claims ?? []) if (this.#left.has(id)) this.#forget(ref, id)
    const key = refKey(ref)
    if (this.byMember.has(key)) return
    const record = newRecord(ref, claim.startedAt)
    const { ledger } = record
    const since = Math.max(ledger.answeredAt, answeredAt)
    this.byMember.set(key, { ...record, ledger: { ...ledger, answeredAt: since } })
  }

  /**
   * A call lets go of a claim: the hold stays.
   *
   * @param handle - the claim goes with it
   * @returns whether it stays until then
   */
  leave(ref: MemberRef, id: number, handle: object): boolean {
    const record = this.of(ref)
    const claim = this.claim(ref, id)
    this.#owners.delete(id)
    if (record === undefined || claim === undefined) return false
    const { goal, ending } = claim
    const isOurs = goal.kind === 'drain' || isUndo(goal)
    if (!isOurs || !(owes(record.ledger) || ending.ended?.outcome === 'overruled')) {
      this.#forget(ref, id)
      return false
    }
    const ended = ending.ended ?? { outcome: 'aborted', at: 0, error: null }
    const over = { goal: { kind: 'watch' }, ending: { ...ending, ended, holding: false } } as const
    const claims = record.claims.map((one) => (one === claim ? { ...one, ...over } : one))
    this.byMember.set(refKey(ref), { ...record, claims })
    this.#left.set(id, ref)
    this.#gone.register(handle, { ref, id })
    this.tidy(ref)
    return true
  }

  /** A call takes up a claim that it had let go of. @returns whether it is still there: no later call has had the member */
  takeUp(owner: Owner, ref: MemberRef, id: number): boolean {
    const record = this.of(ref)
    if (record === undefined || !this.#left.delete(id)) return false
    const live = record.claims.filter((one) => this.#owners.has(one.id))
    this.byMember.set(refKey(ref), { ...record, views: viewsOf(record, live) })
    this.#owners.set(id, owner)
    return true
  }

  /** The members that calls have let go of, and nobody else looks after, where this look is news. */
  leftBehind(look: SeenLook): readonly MemberRef[] {
    if (this.#left.size === 0 || look === this.#shown) return []
    this.#shown = look
    const refs = new Map([...this.#left.values()].map((ref) => [refKey(ref), ref])).values()
    return [...refs].filter((ref) => this.of(ref)?.claims.every(({ id }) => this.#left.has(id)))
  }

  /** Forgets a claim of a call that is over. */
  #forget(ref: MemberRef, id: number): void {
    this.#left.delete(id)
    const record = this.of(ref)
    if (record === undefined) return
    const claims = record.claims.filter((claim) => claim.id !== id)
    const views = claims.length === 0 ? record.views : viewsOf(record, claims)
    this.byMember.set(refKey(ref), { ...record, claims, views })
    this.tidy(ref)
  }

  /** A record goes with its last claim, or once no change of ours can come any more that nobody looks after. */
  tidy(ref: MemberRef): void {
    const record = this.of(ref)
    if (record === undefined || record.claims.some(({ id }) => this.#owners.has(id))) return
    const key = refKey(ref)
    const { pending, late } = record.ledger
    if (pending !== null) return
    if (late.length === 0) {
      if (record.claims.length === 0) this.byMember.delete(key)
      return
    }
    try {
      const now = this.#clock.now()
      const timed = late.map((one) => ({ ...one, until: one.until ?? now + this.#lateBound }))
      this.byMember.set(key, { ...record, ledger: { ...record.ledger, late: timed } })
    } catch {
      this.byMember.delete(key) // the caller's clock throws: nobody can wait by it
    }
  }

  /** Forgets lost changes that nobody has looked after since their time was over. */
  sweep(): void {
    const now = this.#clock.now()
    for (const [key, { claims, ledger }] of this.byMember) {
      const isOver = ledger.late.every(({ until }) => until !== null && until + REMEMBERED < now)
      if (claims.length === 0 && ledger.pending === null && isOver) this.byMember.delete(key)
    }
  }
}

/** What is seen of a member by those that look for these claims. */
function viewsOf({ views }: MemberRecord, claims: readonly Claim[]): MemberRecord['views'] {
  return new Map([...views].filter(([view]) => claims.some((one) => one.view === view)))
}
