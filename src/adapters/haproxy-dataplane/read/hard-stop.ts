/**
 * HAProxy's `hard-stop-after` in the configuration, in milliseconds: how long a process may live that a
 * reload has replaced. `unset`: as long as its connections. `unknown`: it could not be read.
 */
export type HardStop = number | 'unset' | 'unknown'

/** What the configuration was found to say at a moment. */
export interface ToldHardStop {
  /** `unread`: it could not be read just now. */
  readonly value: HardStop | 'unread'
  /**
   * Whether the file is what a reload has last succeeded with, as far as the API tells: none is under way, and the
   * newest one has not failed. `withheld`: the list of reloads is kept from this user. Undefined: it was not asked.
   */
  readonly settled: boolean | 'withheld' | undefined
}

/** A replaced process is told to stop a moment after its successor answers, in milliseconds. */
export const SLACK = 1_000
/** So many replaced processes are remembered. */
const MOST = 200

/** A process that was seen as the present one. */
interface Started {
  /** On the clock: the earliest moment at which it can have been started. */
  from: number
  /**
   * Whether the file may be what it was started with, for an operator who vouches for that: not where a reload was
   * under way when the file was first read, in the life of this process.
   */
  word: 'good' | 'void' | undefined
  /** Whether every value that it can have been started with was read. */
  bound: boolean
}

/**
 * What is known of how long replaced processes live. A process lives by the value that it was started with: what
 * is in the file binds those alone that were started after it was read (2.9 with HAProxy 2.6, 3.2 and 3.4).
 */
export class HardStops {
  #largest: HardStop = 'unknown'
  #unread = false
  /** On the clock: since when every value that the file had is known. */
  #since: number | undefined
  #hasSettled = false
  #withheld = false
  #version: number | undefined
  /** By incarnation. */
  readonly #seen = new Map<string, Started>()

  /** The largest value that was read. */
  get largest(): HardStop {
    return this.#largest
  }

  /** Whether the file could not be read when it was asked last: it may say anything. */
  get unread(): boolean {
    return this.#unread
  }

  /** Whether a reload was under way, or had failed, at each look so far: the value is not that of any process yet. */
  get isVoid(): boolean {
    return !this.#hasSettled
  }

  /** Whether it is still to be asked how the last reload ended. */
  get asksReloads(): boolean {
    return this.#since === undefined && !this.#withheld
  }

  /**
   * Takes note of what the file says now.
   *
   * @param present - the processes that answer, by incarnation
   */
  read({ value, settled }: ToldHardStop, present: readonly string[], now: number): void {
    this.#unread = value === 'unread'
    if (value === 'unknown' || value === 'unread') return
    const known = this.#largest
    if (known === 'unset' || value === 'unset') this.#largest = 'unset'
    else this.#largest = known === 'unknown' ? value : Math.max(known, value)
    this.#withheld ||= settled === 'withheld'
    this.#hasSettled ||= settled !== false
    if (settled === true) this.#since ??= now
    for (const name of present) {
      const started = this.#seen.get(name)
      if (started !== undefined) started.word ??= this.#hasSettled ? 'good' : 'void'
    }
  }

  /** Takes note of the configuration's version: after two steps at once, one of the values was never read. */
  version(text: string | undefined): void {
    const version = Number(text ?? Number.NaN)
    const steps = version - (this.#version ?? version)
    if (steps !== 0 && steps !== 1) this.#since = undefined
    this.#version = version
  }

  /**
   * Takes note of a process that is the present one.
   *
   * @param asked - on the clock: before it was asked for its age
   */
  present(incarnation: string, uptime: number, asked: number): void {
    const before = this.#seen.get(incarnation)
    // the age is in whole seconds
    const from = Math.max(before?.from ?? -Infinity, asked - (uptime + 1) * 1_000)
    this.#seen.delete(incarnation)
    const word = before?.word ?? (this.#hasSettled ? 'good' : undefined)
    const bound = before?.bound === true || (this.#since !== undefined && this.#since <= from)
    this.#seen.set(incarnation, { from, word, bound })
    for (const name of this.#seen.keys()) {
      if (this.#seen.size <= MOST) break
      this.#seen.delete(name)
    }
  }

  /**
   * How long a process that was seen can live once it is replaced.
   *
   * @param trusted - the operator vouches for it that processes were started with the value in the file
   * @returns undefined where it can't be told
   */
  boundOf(incarnation: string, trusted: boolean): number | undefined {
    const started = this.#seen.get(incarnation)
    if (typeof this.#largest !== 'number' || started === undefined) return undefined
    const isKnown = started.bound || (trusted && started.word === 'good')
    return isKnown ? this.#largest + SLACK : undefined
  }
}
