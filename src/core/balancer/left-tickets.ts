import type { MemberRef } from '../../provider/contract.js'
import { refKey } from '../../provider/member-ref.js'

/** A ticket that an ended drain has left in its store. */
interface LeftTicket {
  /** Its members that were not opened since. */
  readonly closed: Set<string>
  readonly drop: () => Promise<void>
}

/** Others open members too, and nothing here tells of that: the oldest tickets are left to them. */
const MOST = 1_000

/**
 * The tickets that drains of this process have left on a balancer. One whose members were all opened by `ready()` has nothing to
 * undo any more, and is deleted: whoever closes a member later would be taken for its drain.
 */
export class LeftTickets {
  readonly #left = new Map<string, LeftTicket>()

  add(id: string, refs: readonly MemberRef[], drop: () => Promise<void>): void {
    this.#left.delete(id)
    this.#left.set(id, { closed: new Set(refs.map(refKey)), drop })
    const [oldest] = this.#left.keys()
    if (this.#left.size > MOST && oldest !== undefined) this.#left.delete(oldest)
  }

  /** The ticket was deleted, or another call goes on with it. */
  forget(id: string): void {
    this.#left.delete(id)
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
    await Promise.all(over.map(({ drop }) => drop()))
  }
}
