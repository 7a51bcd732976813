import type { DrainableProvider, MemberRef, Snapshot } from '../../../provider/contract.js'
import type { Clock } from '../../../provider/clock.js'
import { refKey } from '../../../provider/member-ref.js'
import { readingsOf } from './look.js'

/** Receives a pushed snapshot. */
export type OnPush = (snapshot: Snapshot) => void

/**
 * Listens to a provider's pushes about the members of a subscriber. A push is an earlier look: polling goes on beside
 * it, so a missing push costs time but not correctness.
 */
export class Push {
  readonly #provider: DrainableProvider
  readonly #clock: Clock
  readonly #onPush: OnPush
  #key = ''
  #stop = new AbortController()

  constructor(provider: DrainableProvider, clock: Clock, onPush: OnPush) {
    this.#provider = provider
    this.#clock = clock
    this.#onPush = onPush
  }

  /** Listens to these members from now on; to nothing if there are none. */
  follow(refs: readonly MemberRef[]): void {
    const key = refs.map(refKey).sort().join('\n')
    if (key === this.#key) return
    this.#key = key
    this.#stop.abort()
    if (refs.length === 0 || this.#provider.watch === undefined) return
    this.#stop = new AbortController()
    void this.#listen(refs, this.#stop.signal)
  }

  async #listen(refs: readonly MemberRef[], signal: AbortSignal): Promise<void> {
    try {
      const snapshots = this.#provider.watch?.(refs, { signal, clock: this.#clock }) ?? []
      for await (const snapshot of snapshots) {
        if (signal.aborted) return
        this.#onPush(snapshot)
      }
    } catch {
      // Polling reports the error; the next change of members tries again.
    }
    if (!signal.aborted) this.#key = ''
  }
}

/** Whether a pushed snapshot covers all of these members: a member that it leaves out is not absent. */
export function speaksFor(snapshot: Snapshot, refs: readonly MemberRef[] | 'all'): boolean {
  if (refs === 'all') return false
  const readings = readingsOf(snapshot)
  return refs.every((ref) => readings.has(refKey(ref)))
}

/**
 * The earliest moment any number in a pushed snapshot can be from: it replaces the time of the request. Undefined if
 * a member was read in no process: only samples have a time, so the push can be older than our last change.
 */
export function dateOf({ readings }: Snapshot, now: number): number | undefined {
  const moments = readings.map(({ scopes }) =>
    scopes.filter((scope) => scope.state === 'read').map((scope) => scope.sampledAt),
  )
  if (moments.some((known) => known.length === 0)) return undefined
  return Math.min(now, ...moments.flat())
}
