import type { MemberRef } from '../../provider/contract.js'
import { refKey } from '../../provider/member-ref.js'

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
