import type { Settings } from '../options.js'
import { incarnationOf, type ProcessInfo } from '../codec/info.js'
import type { Facts } from './master.js'
import type { Process } from './process.js'

/** The margin on top of `within`, because old processes are stopped only once the new one runs, ms. */
const WITHIN_MARGIN = 2_000
/** A slower answer can come from a process that stood still meanwhile, ms. */
const SLOW = 250

/** What is not known about earlier processes. */
export interface Blindness {
  readonly why: string
  /** Whether it refuses a drain before any change; otherwise idle is reported but not verified. */
  readonly refuses: boolean
}

/**
 * Knows whether there can be earlier processes that can't be reached. A master lists its old workers. Without one,
 * HAProxy tells nothing of a process that it replaced: only the time for which it has run can exclude one, by the
 * option oldWorkers.
 */
export class Unseen {
  readonly #settings: Settings
  readonly #label: string
  #facts: Facts | undefined
  #hasMaster = false
  /**
   * For how long HAProxy was seen to run, ms: by its clock and by ours, whichever says less. Its own clock does not show
   * every pause: that of 3.0 includes one in which nothing was due (measured: 4 s of SIGSTOP), while the timers of its
   * predecessor, including `hard-stop-after`, excluded it. So what passes without an answer does not count either.
   */
  #ran = 0
  #from: { readonly by: string; readonly ran: number; at: number; lived: number } | undefined
  /** When a process that was never seen can have been replaced at the latest, by that time. */
  #replacedAt = 0
  #lookedAt = -Infinity

  constructor(settings: Settings, label: string) {
    this.#settings = settings
    this.#label = label
  }

  /** Takes in the facts of the first process that was read. */
  learn(facts: Facts, hasMaster: boolean, now: number): void {
    this.#facts = facts
    this.#hasMaster = hasMaster
    this.#ran = facts.info.lived
    this.note(facts.info, now, now)
  }

  /** The process that serves was replaced. Two reloads may lie between two looks, and what was in between is unknown. */
  succeed(): void {
    this.#replacedAt = this.#ran
    if (this.#facts !== undefined) this.#facts = { ...this.#facts, neverReloaded: false }
  }

  /** Takes in an answer of the process that serves. */
  note(info: ProcessInfo, askedAt: number, answeredAt: number): void {
    const from = this.#from
    const by = incarnationOf(info)
    if (from?.by === by)
      this.#ran = from.ran + Math.max(0, Math.min(askedAt - from.at, info.lived - from.lived))
    if (from?.by !== by || answeredAt - askedAt > SLOW)
      this.#from = { by, ran: this.#ran, at: answeredAt, lived: info.lived }
    this.#lookedAt = askedAt
  }

  /** It did not answer. */
  fail(): void {
    this.#from = undefined
  }

  /** For how long HAProxy was seen to run, ms. */
  get ran(): number {
    return this.#ran
  }

  /** When the last look at the process that serves was asked for. */
  get lookedAt(): number {
    return this.#lookedAt
  }

  /**
   * Whether no process that was never seen can hold work any more, without a master: what is not listed has ended.
   * A drain that is resumed, and one that goes by steps, knows processes that this provider has never met.
   */
  get knowsAll(): boolean {
    if (this.#facts === undefined || this.#hasMaster) return false
    return this.#settings.oldWorkers === 'accept' || this.hasPassed(this.#replacedAt)
  }

  /** Why earlier processes may hold work unseen; undefined if that is excluded. */
  blindness(): Blindness | undefined {
    const facts = this.#facts
    if (facts === undefined || this.#hasMaster || this.hasPassed(this.#replacedAt)) return undefined
    const { oldWorkers } = this.#settings
    const remedy = `give its socket as 'master', or set oldWorkers: { within: <your hard-stop-after> }`
    const waits = typeof oldWorkers === 'object'
    if (facts.mworker === undefined) {
      const why = `${this.#label} can't be asked for old workers at level ${facts.level}: run HAProxy under a master (haproxy -W -S) and ${remedy}`
      return { why, refuses: oldWorkers !== 'accept' }
    }
    if (!facts.mworker) {
      const why = `HAProxy at ${this.#label} runs without a master, so a process that it replaced (haproxy -sf) would not be seen: run it under one (haproxy -W -S) and ${remedy}`
      return { why, refuses: waits }
    }
    const why = `HAProxy at ${this.#label} runs under a master (-W) whose socket is not known, so old workers of a reload would not be seen: start it with -S /run/haproxy-master.sock and ${remedy} or 'accept'`
    return { why, refuses: waits || (oldWorkers === 'wait' && !facts.neverReloaded) }
  }

  /** Whether a process that was replaced then, by {@link Unseen.ran}, has ended by the option oldWorkers. */
  hasPassed(replacedAt: number): boolean {
    const { oldWorkers } = this.#settings
    if (typeof oldWorkers !== 'object') return false
    return this.#ran - replacedAt >= oldWorkers.within + WITHIN_MARGIN
  }

  /** Whether a process that can't be read counts as ended. */
  isGivenUp({ replacedAt }: Process): boolean {
    if (this.#settings.oldWorkers === 'accept') return true
    return replacedAt !== undefined && this.hasPassed(replacedAt)
  }
}
