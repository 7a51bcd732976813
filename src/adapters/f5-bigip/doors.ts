import type { AdminState, MemberRef } from '../../provider/contract.js'
import { refKey } from '../../provider/member-ref.js'

/**
 * When a member that was open to persistent clients was taken offline. Statistics can be as old as
 * `freshness`: until they are younger than that moment they may not show the client that slipped in
 * just before it, so they prove nothing.
 */
export class Doors {
  readonly #open = new Set<string>()
  readonly #closed = new Map<string, number>()

  /** A change of ours closed it at that time at the latest. */
  close(ref: MemberRef, at: number): void {
    const key = refKey(ref)
    this.#open.delete(key)
    this.#closed.set(key, Math.min(at, this.#closed.get(key) ?? Infinity))
  }

  /** A look showed that state at that time; returns since when it is closed, where it was seen open before. */
  seen(ref: MemberRef, own: AdminState | 'unknown', at: number): number | undefined {
    const key = refKey(ref)
    if (own !== 'maint') {
      this.#open.add(key)
      this.#closed.delete(key)
      return undefined
    }
    if (this.#open.delete(key)) this.#closed.set(key, this.#closed.get(key) ?? at)
    return this.#closed.get(key)
  }
}
