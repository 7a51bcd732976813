import type { GroupedRun, RunGroup } from '../../core/calls/run/run-group.js'

/** The runs of one drain, which end together; see {@link RunGroup}. */
export class Together implements RunGroup {
  readonly #open = new Set<GroupedRun>()
  /** Runs that were asked to close, and those that have closed. */
  #closing: ReadonlySet<GroupedRun> = new Set()
  readonly #closed = new Set<GroupedRun>()
  /** The number of runs that have not joined yet. */
  #awaited: number

  constructor(size: number) {
    this.#awaited = size
  }

  join(run: GroupedRun): void {
    this.#open.add(run)
    this.#awaited -= 1
  }

  leave(run: GroupedRun): void {
    this.#open.delete(run)
    this.#agree()
    this.check()
  }

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

  closed(run: GroupedRun): void {
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
function unconfirmed(runs: readonly GroupedRun[]): readonly GroupedRun[] {
  if (runs.length < 2) return []
  const idle = runs.map((run) => ({ run, when: run.idle() }))
  const from = Math.max(...idle.map(({ when }) => when?.from ?? Infinity))
  if (from === Infinity) return []
  return idle.flatMap(({ run, when }) => (when !== null && when.seen < from ? [run] : []))
}
