import type { CallContext, Change, ChangeResult, MemberRef } from '../../provider/contract.js'
import { refKey } from '../../provider/member-ref.js'
import { carefulApply } from '../careful-apply.js'
import type { CarefulAdapter, SeenMember } from '../change.js'

/**
 * The members that a provider holds, and that have passed the checks of a first hold: a further hold only puts one back
 * or raises it, takes no capacity, and is never refused by them. A member that was found held counts, as in a drain that
 * another process began.
 */
export class HeldMembers {
  readonly #keys = new Set<string>()
  /** Why one of them was not raised to maint, for good. */
  readonly #unsealed = new Map<string, string>()

  has(ref: MemberRef): boolean {
    return this.#keys.has(refKey(ref))
  }

  /** Why one that is held is not sealed; undefined if that was not refused. */
  unsealed(ref: MemberRef): string | undefined {
    const why = this.#unsealed.get(refKey(ref))
    return why === undefined ? undefined : `it is not sealed: ${why}`
  }

  /** The checks are passed: what is sent from now on may be executed, whatever becomes of the call. */
  add(ref: MemberRef): void {
    this.#keys.add(refKey(ref))
  }

  /** Makes changes, and takes in what becomes of each. */
  apply<F extends SeenMember, L>(
    adapter: CarefulAdapter<F, L>,
    changes: readonly Change[],
    ctx: CallContext,
  ): Promise<readonly ChangeResult[]> {
    const before = new Set(this.#keys)
    const result = (i: number, one: ChangeResult): void => {
      const change = changes[i]
      if (change !== undefined) this.#note(change, one, before)
      ctx.result?.(i, one)
    }
    return carefulApply(adapter, changes, { ...ctx, result })
  }

  #note(change: Change, result: ChangeResult, before: ReadonlySet<string>): void {
    if (change.kind === 'terminate') return
    const key = refKey(change.ref)
    const isHold = change.kind === 'hold'
    const isRefused = result.status === 'rejected'
    // Of a hold that is not known, `add` tells whether anything was sent.
    if (!isHold || result.status !== 'unknown') {
      const isHeld = isHold ? !isRefused || before.has(key) : isRefused && before.has(key)
      if (isHeld) this.#keys.add(key)
      else this.#keys.delete(key)
    }
    this.#unsealed.delete(key)
    const isSeal = isHold && change.to === 'maint' && this.#keys.has(key)
    if (isSeal && isRefused && !result.error.retryable)
      this.#unsealed.set(key, result.error.message)
  }
}
