import type { Clock } from '../../../provider/clock.js'
import type { MemberRef } from '../../../provider/contract.js'
import { DrainableError } from '../../../provider/error.js'
import { formatRef } from '../../../provider/member-ref.js'
import type { Balancer } from '../../balancer/balancer.js'
import type { LeftRecord } from '../../balancer/memory.js'
import type { Owner } from '../../balancer/owner.js'
import type { Goal, OpenGoal } from '../../member/wanted.js'
import type { Order } from '../../member/input.js'
import { owes, type Claim, type Ending, type MemberRecord } from '../../member/record.js'
import { awaitsOthers, besideOthers } from '../../member/hold.js'
import { LEFT_ALONE } from '../../member/open.js'
import { claimedOf, type ClaimedMember } from '../../member/claimed.js'
import type { PreparedClaim } from './run-spec.js'

/** A claim, by its member. */
interface Mine {
  readonly ref: MemberRef
  readonly id: number
  /** As it was when the call let go of it: an undo after that begins there. */
  left: Left | null
  /** As it was seen last: a record is another object once anything in it has changed. */
  seen?: { readonly record: MemberRecord; readonly claimed: ClaimedMember }
}

interface Left {
  readonly claimed: ClaimedMember
  /** {@link Balancer.touches} */
  readonly touches: number
  /** With what others have seen since. */
  readonly since: LeftRecord
}

type WithoutClaim<T> = T extends unknown ? Omit<T, 'claim'> : never

/** The claims of one call, and what it knew of its members when it let go of them. */
export class Claims {
  readonly #balancer: Balancer
  readonly #owner: Owner
  readonly #clock: Clock
  #mine: readonly Mine[] = []
  #isLaying = false
  #isLaid = false

  constructor(balancer: Balancer, owner: Owner, clock: Clock) {
    this.#balancer = balancer
    this.#owner = owner
    this.#clock = clock
  }

  /** Whether its members are known. */
  get laid(): boolean {
    return this.#isLaid
  }

  /** Whether some are laid or dropped just now: nothing is concluded before all are. */
  get laying(): boolean {
    return this.#isLaying
  }

  get refs(): readonly MemberRef[] {
    return this.#mine.map(({ ref }) => ref)
  }

  /** Its members as it sees them now, or saw them when it let go; none before it is prepared. */
  readonly claimedMembers = (): readonly ClaimedMember[] =>
    this.#mine.flatMap((one) => this.#claimedOf(one) ?? [])

  /** @param seq - the number of the call. @param ticket - the id of the ticket that it writes; null for none */
  lay(seq: number, claims: readonly PreparedClaim[], ticket: string | null): void {
    this.#isLaid = true
    this.#together(() => {
      const mine: Mine[] = []
      this.#mine = mine
      const isAlone = claims.length === 1
      for (const { ref, start, left } of claims) {
        const policy = isAlone ? start.policy : besideOthers(start.policy)
        const laying = { seq, start: { ticket, ...start, policy }, left }
        mine.push({ ref, id: this.#balancer.lay(this.#owner, ref, laying), left: null })
      }
    })
  }

  /** Gives the same order for every claim that it has not let go of. Nothing is concluded before all have it. */
  order(order: WithoutClaim<Order>): void {
    this.#balancer.together(() => {
      for (const { ref, id, left } of this.#mine)
        if (left === null) this.#balancer.take(ref, { ...order, claim: id })
    })
  }

  /** Takes out together those that are idle and waited for the others. @returns whether any had */
  takeOut(): boolean {
    const isAny = this.claimedMembers().some(({ claim }) => awaitsOthers(claim))
    if (isAny) this.order({ type: 'out' })
    return isAny
  }

  /** The outcomes stand: what comes after is told as a loss. */
  settle(): void {
    this.#balancer.together(() => {
      for (const { ref, claim } of this.claimedMembers())
        if (!claim.ending.settled) this.#balancer.take(ref, { type: 'settle', claim: claim.id })
    })
  }

  /** Whether an answer to a change of its own is due. */
  get isDue(): boolean {
    const mine = new Set(this.#mine.map(({ id }) => id))
    return this.claimedMembers().some(({ ledger }) => mine.has(ledger.pending?.by ?? -1))
  }

  /** Keeps what is known, and drops the claims: the holds stay. */
  keep(): void {
    for (const one of this.#mine) {
      const claimed = this.#claimedOf(one)
      if (claimed !== undefined && one.left === null) one.left = this.#leave(claimed)
    }
  }

  drop(): void {
    for (const { ref, id } of this.#mine) this.#balancer.forget(ref, id)
  }

  /** What it let go of is kept up to date with late answers. @param touches - the count of the member before the answer */
  noted(touches: number): void {
    for (const one of this.#mine) {
      // Any other of its members has had no answer of this call.
      const isDue = one.left !== null && one.left.claimed.ledger.pending !== null
      if (one.left !== null && isDue) one.left = this.#leftNow(one.ref, one.left, touches)
    }
  }

  /**
   * Undoes its claims. Those that it had let go of are laid again first, by a call of this number; where another call has had the
   * member since, whose its state is now is not known here.
   */
  undo(goal: OpenGoal, again: number | undefined): void {
    const before = this.#mine
    this.#together(() => {
      if (again !== undefined) this.#mine = before.map((one) => this.#layAgain(one, again))
      for (const [i, one] of this.#mine.entries()) {
        if (one.left !== null) continue // left to others
        const left = before[i]?.left?.since.left
        this.#balancer.undo(one.ref, { type: 'undo', claim: one.id, goal, left })
      }
    })
  }

  #layAgain(one: Mine, seq: number): Mine {
    const { left } = one
    if (left === null) return one
    const isStale = left.touches !== this.#balancer.touches(one.ref)
    const { claim, ledger } = left.claimed
    if (isStale && owes(ledger)) return leftToOthers(one, left, this.#clock.now())
    const ended = isStale ? null : claim.ending.ended
    const start = { ...letGo(claim, ended), goal: { kind: 'watch' } as Goal }
    return {
      ref: one.ref,
      id: this.#balancer.lay(this.#owner, one.ref, { seq, start }),
      left: null,
    }
  }

  #claimedOf(one: Mine): ClaimedMember | undefined {
    if (one.left !== null) return one.left.claimed
    const record = this.#balancer.record(one.ref)
    if (record === undefined) return undefined
    if (one.seen?.record === record) return one.seen.claimed
    const claim = record.claims.find(({ id }) => id === one.id)
    if (claim === undefined) return undefined
    const claimed = claimedOf(record, claim)
    one.seen = { record, claimed }
    return claimed
  }

  #leftNow(ref: MemberRef, left: Left, before: number): Left {
    const record = this.#balancer.record(ref)
    if (record === undefined) return left
    const claimed = { ...left.claimed, ledger: record.ledger }
    // Its own answer is no news of another call.
    return left.touches === before ? this.#leave(claimed) : { ...left, claimed }
  }

  #leave(claimed: ClaimedMember): Left {
    const touches = this.#balancer.touches(claimed.ref)
    return {
      claimed,
      touches,
      since: this.#balancer.leftRecords.keep(this.#owner.provider, claimed),
    }
  }

  #together(part: () => void): void {
    this.#isLaying = true
    part()
    this.#isLaying = false
  }
}

/** A claim whose hold is not kept up any more. */
function letGo(claim: Claim, ended: Ending | null): Claim {
  const ending = { ...claim.ending, ended, holding: false }
  const proof = { ...claim.proof, proof: null, verdict: null, sealed: false }
  return { ...claim, ending, proof }
}

/**
 * Another call has had the member since this one let go: whose its state is now is not known here. Its ticket stays as it was: it
 * alone knows what this call has changed.
 */
function leftToOthers(one: Mine, left: Left, at: number): Mine {
  const { ref } = one
  const words = `${formatRef(ref)}: another call of this process has changed it since; ${LEFT_ALONE}`
  const error = new DrainableError('CONFLICT', words, { ref, retryable: false })
  const claim = letGo(left.claimed.claim, { outcome: 'overruled', at, error })
  return { ...one, left: { ...left, claimed: { ...left.claimed, claim } } }
}
