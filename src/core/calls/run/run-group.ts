/** One of several runs that end together. */
export interface GroupedRun {
  /** Whether all its members have an outcome, or the run has ended alone. */
  readonly hasEnded: () => boolean
  /**
   * Since when its members have been idle, and until when that was seen, by the clock. Null if it has not ended as
   * idle; `seen` is -Infinity if it can't be read.
   */
  readonly idle: () => { readonly from: number; readonly seen: number } | null
  /**
   * Called if its last look was too early to prove idle: it looks once more. If it can't be read, it has not ended
   * before a look has shown idle.
   */
  readonly doubt: () => void
  /** Whether it lost an idle since it reported its end. */
  readonly hasLost: () => boolean
  /** Called when all have ended: it closes its ticket, then calls {@link RunGroup.closed}. */
  readonly close: () => void
  /** Called when every outcome stands. */
  readonly settle: () => void
  /** Called when one lost idle meanwhile: it goes on looking. */
  readonly again: () => void
}

/**
 * Runs on several balancers that end together: idle on one is an outcome only while all others have an outcome too. A
 * run that was idle first goes on looking, and can lose idle.
 */
export interface RunGroup {
  readonly join: (run: GroupedRun) => void
  /** Removes a run that ended alone: refused, aborted, undone. The others don't wait for it. */
  readonly leave: (run: GroupedRun) => void
  /** Called when something changed in one of them. */
  readonly check: () => void
  /** Called when the ticket of one is written. */
  readonly closed: (run: GroupedRun) => void
}
