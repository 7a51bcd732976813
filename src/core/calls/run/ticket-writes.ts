import { settledWithin } from '../../../provider/abort.js'
import type { Clock } from '../../../provider/clock.js'
import type { MemberRef } from '../../../provider/contract.js'
import type { DrainableError } from '../../../provider/error.js'
import { refKey } from '../../../provider/member-ref.js'
import type { DrainReport, Why } from '../../../provider/report.js'
import type { Balancer } from '../../balancer/balancer.js'
import type { Owner } from '../../balancer/owner.js'
import { owes } from '../../member/record.js'
import { isDown } from '../../member/wanted.js'
import { ownOf, type ClaimedMember } from '../../member/claimed.js'
import { stillLate } from '../../member/whose.js'
import { LATER_ANSWER, notKept } from '../../tickets/calls.js'
import type { Ticket } from '../../tickets/ticket.js'
import type { TicketKeeper } from '../../tickets/writing/writer.js'
import type { Claims } from './claims.js'
import type { Side } from './run-spec.js'

/** How long after a failed write the ticket is written again, in milliseconds: doubled with each failure. */
const SAVE_AGAIN = 1_000
const SAVE_AGAIN_MOST = 30_000

/** Whose ticket it is. */
interface Writing {
  readonly owner: Owner
  readonly side: Side
  readonly balancer: Balancer
  readonly claims: Claims
  readonly clock: Clock
  readonly fault: (error: DrainableError) => void
}

/** The ticket of one run, as it is written: a failure is told once, and the ticket is written again. */
export class TicketWrites {
  readonly #keeper: TicketKeeper
  readonly #of: Writing
  /** Since when the stored ticket is out of date; null: since before the next look. Undefined: it is up to date. */
  #unsavedAt: number | null | undefined
  /** How many writes have failed since the last one that did not, and what was said of them. */
  #failures = 0
  #said: string | undefined

  constructor(keeper: TicketKeeper, writing: Writing) {
    this.#keeper = keeper
    this.#of = writing
  }

  get id(): string {
    return this.#keeper.head.id
  }

  /** Whether it is kept anywhere, and still ours to write. */
  get kept(): boolean {
    return this.#keeper.kept && !this.#keeper.closed
  }

  /** What is wrong with it. */
  get why(): Omit<Why, 'ref'> | undefined {
    return this.#keeper.why
  }

  now(): Ticket {
    return this.#keeper.ticket(this.#of.claims.claimedMembers())
  }

  /**
   * Writes it before a change is sent.
   *
   * @param limit - milliseconds
   * @throws `TICKET_INVALID`
   */
  async before(limit: number): Promise<void> {
    try {
      await this.write(limit)
    } catch (cause) {
      const error = notKept('saved', cause)
      this.#tell(error)
      throw error
    }
  }

  /** Writes it before the ticket of another call goes that has left a member to this one. */
  async inherit(): Promise<void> {
    if (this.kept) await this.before(LATER_ANSWER)
  }

  write(limit: number): Promise<void> {
    return this.#keeper.saveMembers(this.#of.claims.claimedMembers, limit)
  }

  async save(): Promise<void> {
    this.#unsavedAt = undefined
    try {
      await this.write(LATER_ANSWER)
      this.#failures = 0
      this.#said = undefined
    } catch (cause) {
      this.#unsavedAt = null
      this.#failures += 1
      this.#tell(notKept('saved', cause))
    }
  }

  /** Called at each look: writes an outdated ticket again, at most once a second, and less often while that fails. */
  saveAgain(): void {
    if (this.#unsavedAt === undefined) return
    const now = this.#of.clock.now()
    this.#unsavedAt ??= now
    const wait = Math.min(SAVE_AGAIN_MOST, SAVE_AGAIN * 2 ** Math.max(0, this.#failures - 1))
    if (now - this.#unsavedAt >= wait) void this.save()
  }

  /** This call writes it from now on, and one that did is over. */
  begin(): void {
    const { balancer, owner, side } = this.#of
    if (side === 'watch') return
    balancer.writers.begin(this.id, owner)
    balancer.left.forget(this.id)
  }

  /** An undo goes on with it after its call had let go. */
  takeUp(): void {
    if (this.kept) this.#of.balancer.writers.begin(this.id, this.#of.owner)
  }

  /** The last write of a call that has its outcome. A ticket with nothing left to undo is deleted. */
  async close({ outcome }: DrainReport): Promise<void> {
    const claimedMembers = this.#of.claims.claimedMembers()
    const isOver = this.#of.side === 'open' || outcome === 'refused' || outcome === 'gone'
    // A held member can still be changed: put back, or sealed.
    const isHolding = claimedMembers.some(({ claim }) => claim.ending.holding)
    const isGone = claimedMembers.every(({ claim }) => claim.phase === 'removed')
    const isDropped = isGone || (isOver && !claimedMembers.some(owesYet) && !isHolding)
    if (!isDropped) this.leave()
    await this.written(isDropped ? this.drop() : this.save())
  }

  /** The last write of an undo: what is not undone, or failed, keeps it. */
  async closeUndo(): Promise<void> {
    const isKept = this.#of.claims
      .claimedMembers()
      .some(
        (claimed) =>
          claimed.claim.phase !== 'removed' &&
          (owesYet(claimed) || claimed.claim.ending.ended?.error != null),
      )
    await this.written(isKept ? this.save() : this.drop())
  }

  /** It stays in its store: `ready()` deletes it once it has opened all members. */
  leave(): void {
    const { balancer, claims, side } = this.#of
    if (!this.kept || side !== 'drain') return
    const opening = (refs: readonly MemberRef[]): Promise<void> => this.#opening(refs)
    balancer.left.add(this.id, claims.refs, { opening, drop: () => this.drop() })
  }

  /** Writes that `ready()` opens these members, as an undo of its own would be written before it is sent. */
  async #opening(refs: readonly MemberRef[]): Promise<void> {
    const { claims, clock } = this.#of
    const keys = new Set(refs.map(refKey))
    const toOpening = (claimed: ClaimedMember): ClaimedMember => {
      const { ref, ledger } = claimed
      if (ledger.set === null || !keys.has(refKey(ref))) return claimed
      const change = { kind: 'restore', ref, expect: ledger.set, to: 'ready' } as const
      const late = [...ledger.late, { change, lostAt: clock.now(), until: null, lacked: null }]
      return { ...claimed, ledger: { ...ledger, late } }
    }
    try {
      await this.#keeper.saveMembers(() => claims.claimedMembers().map(toOpening), LATER_ANSWER)
    } catch (cause) {
      this.#tell(notKept('saved', cause))
    }
  }

  /** Deletes it, unless another call goes on with it. If that fails, it stays and is found as an orphan. */
  async drop(): Promise<void> {
    const { balancer, owner } = this.#of
    balancer.left.forget(this.id)
    const writer = balancer.writers.of(this.id)
    if (writer !== undefined && writer !== owner) return
    try {
      const heirs = this.#heirs()
      if (heirs.size > 0) await Promise.all([...heirs].map((heir) => heir.inherit()))
      await this.#keeper.drop(LATER_ANSWER)
    } catch (cause) {
      this.#tell(notKept('deleted', cause))
    }
    balancer.writers.end(this.id, owner)
  }

  /** Those that hold its members on: what it has changed is in their tickets before this one goes. */
  #heirs(): ReadonlySet<Owner> {
    const { balancer, claims, owner } = this.#of
    const heirs = new Set<Owner>()
    for (const { ref, claim } of claims.claimedMembers()) {
      if (claim.heldBy === null) continue
      for (const { ticket } of balancer.record(ref)?.claims.filter(isDown) ?? []) {
        const heir = ticket === null ? undefined : balancer.writers.of(ticket)
        if (heir !== undefined && heir !== owner) heirs.add(heir)
      }
    }
    return heirs
  }

  /** Once its call has let go and no answer is due, another one may begin with it as with that of a process that is gone. */
  letGo(): void {
    const { balancer, claims, owner } = this.#of
    if (!claims.isDue) balancer.writers.end(this.id, owner)
  }

  /** Resolves when all that was asked for is written, or it was waited for long enough. */
  async written(writing: Promise<void> = this.#keeper.written()): Promise<void> {
    await settledWithin(writing, this.#of.clock, LATER_ANSWER)
  }

  /** Another call of this process writes it from now on. */
  yield(): void {
    this.#keeper.yield()
  }

  #tell(error: DrainableError): void {
    if (error.message === this.#said) return
    this.#said = error.message
    this.#of.fault(error)
  }
}

/** Whether anything of ours is left after an undo. A lost change that leads to the present state would keep its ticket for ever. */
function owesYet(claimed: ClaimedMember): boolean {
  const { claim, ledger } = claimed
  if (claim.heldBy !== null || claim.phase === 'removed') return false
  const isBack = claim.ending.ended?.outcome === 'restored' && ledger.set === null
  if (isBack && ledger.pending === null) return stillLate(ledger, ownOf(claimed))
  return owes(ledger)
}
