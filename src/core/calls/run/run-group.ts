import type { IdleTime } from '../../member/idle.js'

/**
 * How far one of several runs is that end together. `open`: some of its members have no outcome, or it is being undone;
 * `ended`: all have one; `closing`: its ticket is being written; `closed`: that is done; `lost`: that is done, and it has
 * lost an idle meanwhile.
 */
export interface Standing {
  readonly state: 'open' | 'ended' | 'closing' | 'closed' | 'lost'
  /** Null if it has not ended as idle. */
  readonly idle: IdleTime | null
}

/**
 * What a run does next. `look`: it looks once more, because its last look was too early to prove idle; `close`: it writes
 * its ticket; `stand`: its outcome stands; `goOn`: it goes on looking, because one has lost idle.
 */
export type Next = 'wait' | 'look' | 'close' | 'stand' | 'goOn'

/**
 * What each of several runs does next. Idle on one balancer is an outcome only while all others have an outcome too, by a
 * look that was asked for after the last of them became idle, and with the tickets of all written.
 */
export function nextOf(runs: readonly Standing[]): readonly Next[] {
  const has = (wanted: Standing['state']): boolean => runs.some(({ state }) => state === wanted)
  if (has('open') || has('closing')) return runs.map(() => 'wait')
  if (has('lost')) return runs.map(({ state }) => (state === 'ended' ? 'wait' : 'goOn'))
  if (!has('ended')) return runs.map(() => 'stand')
  const unseen = unconfirmed(runs)
  if (unseen.includes(true)) return unseen.map((isUnseen) => (isUnseen ? 'look' : 'wait'))
  return runs.map(({ state }) => (state === 'ended' ? 'close' : 'wait'))
}

/**
 * Of which runs it is not known whether they were still idle when the last one became idle. If one has not ended as idle,
 * this does not matter.
 */
function unconfirmed(runs: readonly Standing[]): readonly boolean[] {
  const from = Math.max(...runs.map(({ idle }) => idle?.from ?? Infinity))
  if (runs.length < 2 || from === Infinity) return runs.map(() => false)
  return runs.map(({ idle }) => idle !== null && idle.seen < from)
}

/** A run, as its group sees it. */
export interface GroupedRun {
  readonly standing: Standing
  proceed(next: Next): void
}

/** Runs that end together: those of one call on several balancers, or the only one of a call on one. */
export class RunGroup {
  readonly #runs = new Set<GroupedRun>()

  /** All join in one turn, before the first of them can end. */
  join(run: GroupedRun): void {
    this.#runs.add(run)
  }

  /** Removes a run that is over, or ends alone: refused, aborted, undone. The others don't wait for it. */
  leave(run: GroupedRun): void {
    this.#runs.delete(run)
    this.changed()
  }

  /** Called when something changed in one of them. */
  changed(): void {
    const runs = [...this.#runs]
    const next = nextOf(runs.map(({ standing }) => standing))
    for (const [n, run] of runs.entries()) run.proceed(next[n] ?? 'wait')
  }
}
