/** A run among others that end together. */
export interface Companion {
  /** Whether all its members have an outcome, or it is over for itself. */
  readonly hasEnded: () => boolean
  /**
   * Since when its members have been idle, and until when that was seen, by the clock: null where idle is not what it
   * has ended with, `seen` -Infinity where it can't be read.
   */
  readonly idle: () => { readonly from: number; readonly seen: number } | null
  /**
   * That it is idle was not seen late enough: it looks once more. Where it can't be read it has not ended before a look
   * has shown it.
   */
  readonly doubt: () => void
  /** Whether an idle of it was lost since it said that it has ended. */
  readonly hasLost: () => boolean
  /** All have ended: it closes its ticket, and says {@link Company.closed} then. */
  readonly close: () => void
  /** Every outcome stands. */
  readonly settle: () => void
  /** One was lost meanwhile: it goes on looking. */
  readonly again: () => void
}

/**
 * Runs on several balancers that end together: idle on one is an outcome only while all others have
 * theirs too. One that was idle first goes on looking, and can lose it.
 */
export class Company {
  readonly #open = new Set<Companion>()
  /** Those that were told to close, and those of them that have. */
  #closing: ReadonlySet<Companion> = new Set()
  readonly #closed = new Set<Companion>()
  /** Runs that are still to come. */
  #awaited: number

  constructor(size: number) {
    this.#awaited = size
  }

  join(run: Companion): void {
    this.#open.add(run)
    this.#awaited -= 1
  }

  /** It ended for itself: refused, aborted, undone. The others don't wait for it. */
  leave(run: Companion): void {
    this.#open.delete(run)
    this.#agree()
    this.check()
  }

  /** Something changed in one of them. */
  check(): void {
    if (this.#awaited > 0 || this.#closing.size > 0 || this.#open.size === 0) return
    const runs = [...this.#open]
    if (!runs.every((run) => run.hasEnded())) return
    const late = unconfirmed(runs)
    if (late.length > 0) {
      for (const run of late) run.doubt()
      return
    }
    this.#closing = new Set(runs)
    for (const run of runs) run.close()
  }

  /** The ticket of one is written. */
  closed(run: Companion): void {
    this.#closed.add(run)
    this.#agree()
  }

  #agree(): void {
    const runs = [...this.#closing].filter((run) => this.#open.has(run))
    if (this.#closing.size === 0 || !runs.every((run) => this.#closed.has(run))) return
    this.#closing = new Set()
    this.#closed.clear()
    const lost = runs.some((run) => run.hasLost())
    for (const run of runs) {
      if (lost) run.again()
      else {
        this.#open.delete(run)
        run.settle()
      }
    }
    if (lost) this.check()
  }
}

/**
 * Those of which it is not known whether they were idle still when the last one became so. Where one has not ended as
 * idle, nothing rests on that.
 */
function unconfirmed(runs: readonly Companion[]): readonly Companion[] {
  if (runs.length < 2) return []
  const idle = runs.map((run) => ({ run, when: run.idle() }))
  const from = Math.max(...idle.map(({ when }) => when?.from ?? Infinity))
  if (from === Infinity) return []
  return idle.flatMap(({ run, when }) => (when !== null && when.seen < from ? [run] : []))
}
