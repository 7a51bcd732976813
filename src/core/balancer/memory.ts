import type { MemberRef } from '../../provider/contract.js'
import { refKey } from '../../provider/member-ref.js'
import type { Claim } from '../member/record.js'
import { isUndo, sideOf } from '../member/wanted.js'
import type { Owner } from './owner.js'

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
