import type { AdminState, MemberRef } from '../../../provider/contract.js'
import { refKey } from '../../../provider/member-ref.js'

/**
 * Servers whose names do not resolve. The API shows the drain of such a server, and neither its maintenance nor that it
 * has none: after an undo of ours its own state is known only because it was seen drained before, in the same process.
 */
export class Unresolved {
  /** The process in which a server was seen drained. */
  readonly #drained = new Map<string, string>()
  /** The state that a server was made last. */
  readonly #told = new Map<string, AdminState>()

  /** The API has answered that it set this state. */
  told(ref: MemberRef, state: AdminState): void {
    this.#told.set(refKey(ref), state)
  }

  /** The name does not resolve, and the own drain is shown. */
  drained(ref: MemberRef, process: string): void {
    this.#drained.set(refKey(ref), process)
  }

  /** The name resolves: the own state is shown. */
  forget(ref: MemberRef): void {
    // Asked for every row of every look: nearly always nothing is known.
    if (this.#drained.size + this.#told.size === 0) return
    this.#drained.delete(refKey(ref))
    this.#told.delete(refKey(ref))
  }

  /** Whether a server whose own state is not shown was made ready. */
  isReady(ref: MemberRef, process: string): boolean {
    const key = refKey(ref)
    return this.#told.get(key) === 'ready' && this.#drained.get(key) === process
  }
}
