import type { Change, ChangeResult, MemberRef } from '../../provider/contract.js'
import { refKey } from '../../provider/member-ref.js'

/**
 * The members that a provider holds, and that have passed the checks of a first hold: a further hold only puts one back
 * or raises it, takes no capacity, and is never refused by them. A member that was found held counts, as in a drain that
 * another process began.
 */
export class HeldMembers {
  readonly #keys = new Set<string>()

  has(ref: MemberRef): boolean {
    return this.#keys.has(refKey(ref))
  }

  /** The checks are passed: what is sent from now on may be executed, whatever becomes of the call. */
  add(ref: MemberRef): void {
    this.#keys.add(refKey(ref))
  }

  /** Begins a call. The returned function takes in what became of one of its changes. */
  begin(): (change: Change, result: ChangeResult) => void {
    const before = new Set(this.#keys)
    return ({ kind, ref }, { status }) => {
      // Of a hold that is not known, `add` tells whether anything was sent.
      if (kind === 'terminate' || (kind === 'hold' && status === 'unknown')) return
      const key = refKey(ref)
      const isRefused = status === 'rejected'
      const isHeld = kind === 'hold' ? !isRefused || before.has(key) : isRefused && before.has(key)
      if (isHeld) this.#keys.add(key)
      else this.#keys.delete(key)
    }
  }
}
