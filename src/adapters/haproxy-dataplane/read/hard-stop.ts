/**
 * HAProxy's `hard-stop-after` in the configuration, in milliseconds: how long a process may live that a
 * reload has replaced. `unset`: as long as its connections. `unknown`: it could not be read.
 */
export type HardStop = number | 'unset' | 'unknown'

/**
 * A process lives by the value that it was started with, and a reload may still be on its way when the
 * file is first read: so what is read proves something of a process only where both were known that long
 * before it was replaced, in milliseconds. The API gathers reloads for 5 s, unless it is told otherwise.
 */
const SETTLED = 10_000
/** A replaced process is told to stop a moment after its successor answers, in milliseconds. */
export const SLACK = 1_000
/** So many replaced processes are remembered. */
const MOST = 200

/** What is known of how long replaced processes live. */
export class HardStops {
  #largest: HardStop = 'unknown'
  #unread = false
  #since: number | undefined
  /** By incarnation: when it was last seen as the present process. */
  readonly #seen = new Map<string, number>()

  /** The largest value that was read. */
  get largest(): HardStop {
    return this.#largest
  }

  /** Whether the file could not be read when it was asked last: it may say anything. */
  get unread(): boolean {
    return this.#unread
  }

  /** Takes note of what the file says now. */
  read(value: HardStop | 'unread', now: number): void {
    this.#unread = value === 'unread'
    if (value === 'unknown' || value === 'unread') return
    this.#since ??= now
    const known = this.#largest
    if (known === 'unset' || value === 'unset') this.#largest = 'unset'
    else this.#largest = known === 'unknown' ? value : Math.max(known, value)
  }

  /** Takes note of a process that is the present one. */
  present(incarnation: string, now: number): void {
    this.#seen.delete(incarnation)
    this.#seen.set(incarnation, now)
    for (const name of this.#seen.keys()) {
      if (this.#seen.size <= MOST) break
      this.#seen.delete(name)
    }
  }

  /**
   * How long a process that was seen can live once it is replaced.
   *
   * @param trusted - the operator vouches for it that the file was not changed without a reload
   * @returns undefined where it can't be told
   */
  boundOf(incarnation: string, trusted: boolean): number | undefined {
    if (typeof this.#largest !== 'number') return undefined
    if (trusted) return this.#largest + SLACK
    const seen = this.#seen.get(incarnation)
    const settled = seen !== undefined && this.#since !== undefined && seen - this.#since >= SETTLED
    return settled ? this.#largest + SLACK : undefined
  }
}
