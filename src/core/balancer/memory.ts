import { type Claim, type MemberRecord, owes } from '../member/record.js'
import { isUndo, sideOf } from '../member/wanted.js'
import type { Owner } from './owner.js'
import type { DrainableProvider, MemberRef, Reading } from '../../provider/contract.js'
import { refKey } from '../../provider/member-ref.js'
import { type Clock, wallOf } from '../../provider/clock.js'
import type { Left } from '../member/input.js'
import type { ClaimedMember } from '../member/claimed.js'
import { step } from '../member/step.js'
import { readingsOf, type SeenLook } from './look/look.js'

/** How many members are remembered that had a claim. */
const MOST = 10_000

interface Touch {
  readonly count: number
  /** When a change of it was answered last, by the clock. */
  readonly answeredAt: number
}

const UNTOUCHED: Touch = { count: 0, answeredAt: -Infinity }

/** For each member a count that moves when a claim is laid on it, and when a change of it is answered. */
export class Touches {
  readonly #last = new Map<string, Touch>()
  #count = 0
  /** That of the newest member that is not remembered any more: the others may be as new. */
  #forgotten = UNTOUCHED

  of(key: string): number {
    return this.#of(key).count
  }

  /** Its record can be gone by then: what was asked for until this moment may show the member without the change. */
  answeredAt(key: string): number {
    return this.#of(key).answeredAt
  }

  #of(key: string): Touch {
    return this.#last.get(key) ?? this.#forgotten
  }

  touch(key: string, answeredAt = this.answeredAt(key)): void {
    this.#last.delete(key)
    this.#last.set(key, { count: (this.#count += 1), answeredAt })
    const [oldest] = this.#last
    if (this.#last.size <= MOST || oldest === undefined) return
    this.#forgotten = oldest[1]
    this.#last.delete(oldest[0])
  }
}

/** A claim, and the number of its call. */
interface Spoken {
  readonly seq: number
  readonly claim: Claim
}

/**
 * The newest call that has spoken for a member, by what it wants, while any call is open: of two opposite ones the later
 * wins, also where it was prepared first. An undo speaks for its own call alone.
 */
export class Newest {
  readonly #claims = { down: new Map<string, Spoken>(), open: new Map<string, Spoken>() }

  /** The claim of a later call that wants the opposite. */
  against(key: string, { seq, claim: { goal } }: Spoken): Claim | undefined {
    const side = sideOf(goal)
    if (side === 'none') return undefined
    const opposite = this.#claims[side === 'down' ? 'open' : 'down'].get(key)
    return opposite !== undefined && opposite.seq > seq ? opposite.claim : undefined
  }

  note(key: string, spoken: Spoken): void {
    const { goal } = spoken.claim
    const side = sideOf(goal)
    if (side === 'none' || isUndo(goal)) return
    const { seq = 0 } = this.#claims[side].get(key) ?? {}
    // An earlier call that was prepared longer takes nothing from a later one.
    if (spoken.seq > seq) this.#claims[side].set(key, spoken)
  }

  clear(): void {
    this.#claims.down.clear()
    this.#claims.open.clear()
  }
}

/** The call of this process that writes each ticket, by the ticket's id. */
export class Writers {
  readonly #writers = new Map<string, Owner>()

  of(ticket: string): Owner | undefined {
    return this.#writers.get(ticket)
  }

  /** The call writes this ticket from now on; one that did is over. */
  begin(ticket: string, call: Owner): void {
    const before = this.#writers.get(ticket)
    this.#writers.set(ticket, call)
    if (before !== undefined && before !== call) before.replaced()
  }

  end(ticket: string, call: Owner): void {
    if (this.#writers.get(ticket) === call) this.#writers.delete(ticket)
  }
}

/** A ticket that an ended drain has left in its store. */
interface LeftTicket {
  /** Its members that were not opened since. */
  readonly closed: Set<string>
  readonly writing: LeftWriting
}

/** How it is written from then on. */
export interface LeftWriting {
  /** Says that these members are about to be opened. */
  readonly opening: (refs: readonly MemberRef[]) => Promise<void>
  readonly drop: () => Promise<void>
}

/** Others open members too, and nothing here tells of that: the oldest tickets are left to them. */
const MOST_TICKETS = 1_000

/**
 * The tickets that drains of this process have left on a balancer. One whose members were all opened by `ready()` has nothing to
 * undo any more, and is deleted: whoever closes a member later would be taken for its drain.
 */
export class LeftTickets {
  readonly #left = new Map<string, LeftTicket>()

  add(id: string, refs: readonly MemberRef[], writing: LeftWriting): void {
    this.#left.delete(id)
    this.#left.set(id, { closed: new Set(refs.map(refKey)), writing })
    const [oldest] = this.#left.keys()
    if (this.#left.size > MOST_TICKETS && oldest !== undefined) this.#left.delete(oldest)
  }

  /** The ticket was deleted, or another call goes on with it. */
  forget(id: string): void {
    this.#left.delete(id)
  }

  /** Written before `ready()` opens members: a process that dies in it is not taken for another client. */
  async opening(refs: readonly MemberRef[]): Promise<void> {
    await Promise.all(
      [...this.#left.values()].map(async ({ closed, writing }) => {
        const mine = refs.filter((ref) => closed.has(refKey(ref)))
        if (mine.length > 0) await writing.opening(mine)
      }),
    )
  }

  /** Deletes those that have nothing left once these members are open. */
  async opened(refs: readonly MemberRef[]): Promise<void> {
    const over: LeftTicket[] = []
    for (const [id, ticket] of this.#left) {
      for (const ref of refs) ticket.closed.delete(refKey(ref))
      if (ticket.closed.size > 0) continue
      this.#left.delete(id)
      over.push(ticket)
    }
    await Promise.all(over.map(({ writing }) => writing.drop()))
  }
}

/** How many are listened for. */
const MOST_LEFT = 1_000
/** The view of every other provider object than that of the call. */
const ELSEWHERE = -1

/** A member, as a call has let go of it and as looks of others have shown it since. */
export class LeftRecord {
  readonly #provider: DrainableProvider
  readonly #view: number
  #record: MemberRecord

  constructor(provider: DrainableProvider, { ref, facts, ledger, claim }: ClaimedMember) {
    this.#provider = provider
    this.#view = claim.view
    const ended = claim.ending.ended ?? { outcome: 'aborted' as const, at: 0, error: null }
    // Its claim wants nothing any more.
    const over = { ...claim, goal: { kind: 'watch' as const }, ending: { ...claim.ending, ended } }
    this.#record = { ref, ledger, claims: [over], views: new Map([[claim.view, facts]]) }
  }

  get left(): Left {
    return { ledger: this.#record.ledger }
  }

  see(
    by: DrainableProvider,
    reading: Reading,
    { snapshot: { ended }, askedAt, took }: SeenLook,
    time: { readonly at: number; readonly wall: number },
  ): void {
    const view = this.#provider === by ? this.#view : ELSEWHERE
    const last = this.#record.views.get(view)?.last ?? null
    if (last !== null && (last.askedAt > askedAt || last.reading === reading)) return
    const input = { type: 'look', view, reading, askedAt, took, ended, random: 0, ...time } as const
    this.#record = step(this.#record, input).record
  }
}

/**
 * Members that a call has let go of with something of ours on them. Its handle can still undo that, so what others see of
 * the member in the meantime counts: what is set after a look has shown it open is not ours. A later claim ends this.
 */
export class LeftRecords {
  /** Held weakly: a handle may never be asked to undo anything. */
  readonly #records = new Map<string, WeakRef<LeftRecord>>()
  readonly #clock: Clock
  /** The newest look: all calls on a provider share it, and each tells of it. */
  #told: SeenLook | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  keep(provider: DrainableProvider, claimed: ClaimedMember): LeftRecord {
    const key = refKey(claimed.ref)
    const left = new LeftRecord(provider, claimed)
    this.#records.delete(key)
    if (claimed.ledger.pending !== null || !owes(claimed.ledger)) return left
    this.#records.set(key, new WeakRef(left))
    const [oldest] = this.#records.keys()
    if (this.#records.size > MOST_LEFT && oldest !== undefined) this.#records.delete(oldest)
    return left
  }

  forget(ref: MemberRef): void {
    this.#records.delete(refKey(ref))
  }

  see(by: DrainableProvider, look: SeenLook): void {
    if (this.#records.size === 0 || look === this.#told) return
    this.#told = look
    const time = { at: this.#clock.now(), wall: wallOf(this.#clock) }
    const readings = readingsOf(look.snapshot)
    for (const [key, record] of this.#records) {
      const reading = readings.get(key)
      if (reading !== undefined) record.deref()?.see(by, reading, look, time)
    }
  }
}
