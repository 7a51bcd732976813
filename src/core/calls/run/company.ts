/** One of several runs that end together. */
export interface Companion {
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
  /** Called when all have ended: it closes its ticket, then calls {@link Company.closed}. */
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
export class Company {
  readonly #open = new Set<Companion>()
  /** Runs that were asked to close, and those that have closed. */
  #closing: ReadonlySet<Companion> = new Set()
  readonly #closed = new Set<Companion>()
  /** The number of runs that have not joined yet. */
  #awaited: number

  constructor(size: number) {
    this.#awaited = size
  }

  join(run: Companion): void {
    this.#open.add(run)
    this.#awaited -= 1
  }

  /** Removes a run that ended alone: refused, aborted, undone. The others don't wait for it. */
  leave(run: Companion): void {
    this.#open.delete(run)
    this.#agree()
    this.check()
  }

  /** Called when something changed in one of them. */
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

  /** Called when the ticket of one is written. */
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
 * The runs of which it is not known whether they were still idle when the last one became idle. If one has not ended
 * as idle, this does not matter.
 */
function unconfirmed(runs: readonly Companion[]): readonly Companion[] {
  if (runs.length < 2) return []
  const idle = runs.map((run) => ({ run, when: run.idle() }))
  const from = Math.max(...idle.map(({ when }) => when?.from ?? Infinity))
  if (from === Infinity) return []
  return idle.flatMap(({ run, when }) => (when !== null && when.seen < from ? [run] : []))
}
