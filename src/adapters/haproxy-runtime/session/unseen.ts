import type { ProcessInfo } from '../codec/info.js'
import type { Settings } from '../options.js'
import type { Facts } from './facts.js'
import { type LocalProcesses, NOT_LOCAL } from './local-processes.js'
import type { Process } from './process.js'
import { isSuccessorOf, startedAlone } from './started-alone.js'

/** The margin on top of `within`, because old processes are stopped only once the new one runs, ms. */
const WITHIN_MARGIN = 2_000
/** The shortest time between two searches of the system for other processes, ms. */
const NEIGHBOURS_LOOK = 250

/** What is not known about earlier processes. */
export interface Blindness {
  readonly why: string
  /** Whether it refuses a drain before any change; otherwise idle is reported but not verified. */
  readonly refuses: boolean
}

/**
 * Tracks whether there can be earlier processes that can't be reached. Under a master with an unknown socket, it can
 * be known that there was no reload. Without a master nothing shows a reload (`-sf`); only the arguments of the
 * process, and its age, can exclude one.
 */
export class Unseen {
  readonly #settings: Settings
  readonly #label: string
  #facts: Facts | undefined
  #hasMaster = false
  /** Whether a process was replaced that can't be reached. */
  #lost = false
  /** The latest time when the oldest process with unseen predecessors can have started, by the clock of the calls. */
  #bornAt = 0
  /** When the last look at the process that serves was asked for, by the same clock. */
  #lookedAt = -Infinity
  #alone = false
  /** When a process started that may have replaced one that was never seen, by the same clock. */
  #doubtedAt: number | undefined

  readonly #local: LocalProcesses
  /** The process that was read last. */
  #serves: ProcessInfo | undefined
  /**
   * Other processes with its configuration: no argument names a process that was told to finish its work (SIGUSR1).
   */
  #neighbours: readonly number[] = []
  #neighboursAt = -Infinity

  constructor(settings: Settings, label: string, local: LocalProcesses = NOT_LOCAL) {
    this.#settings = settings
    this.#label = label
    this.#local = local
  }

  /** Takes in the facts of the first process that was read. */
  async learn(facts: Facts, hasMaster: boolean, now: number): Promise<void> {
    this.#facts = facts
    this.#hasMaster = hasMaster
    await this.#meet(facts.info, now)
  }

  /** Called when a process was replaced that can't be reached. */
  async lose(next: ProcessInfo, now: number): Promise<void> {
    this.#lost = true
    await this.#meet(next, now)
  }

  async #meet(info: ProcessInfo, now: number): Promise<void> {
    this.#bornAt = now - info.lived
    // Over TCP the process can be on another machine, where that pid is another process.
    const isLocal = 'path' in this.#settings.socket.to
    const plain = this.#facts?.mworker === false && isLocal && !this.#hasMaster
    this.#alone = plain && !this.#lost && (await startedAlone(info))
    this.#serves = info
    this.#neighbours = this.#hasMaster ? [] : await this.#local.neighbours(info)
  }

  /** Checks with the system which of the other processes still exist. */
  async lookAround(now: number): Promise<void> {
    const serves = this.#serves
    const due = this.#neighbours.length > 0 && now >= this.#neighboursAt + NEIGHBOURS_LOOK
    if (serves === undefined || !due) return
    this.#neighboursAt = now
    const there = await Promise.all(
      this.#neighbours.map(async (pid) => (await this.#local.fate({ pid }, serves)) !== 'ended'),
    )
    this.#neighbours = this.#neighbours.filter((_, at) => there[at])
  }

  /**
   * Takes in a look at the process that serves. Passed time is measured up to that look, not up to now: HAProxy may
   * have stood still since (a paused VM), and its `hard-stop-after` with it.
   *
   * @param stood - how long it stood still since the look before, ms: earlier processes do not end sooner because of
   *   that
   */
  note(lookedAt: number, stood: number): void {
    this.#lookedAt = lookedAt
    this.#bornAt += stood
    if (this.#doubtedAt !== undefined) this.#doubtedAt += stood
  }

  /**
   * Called when a process was replaced. There can be two reloads between two looks, and a process that was never seen
   * can hold work longer than the known ones. This is excluded if the first process still served when the last one
   * had started, or if the arguments of the last one name only the first.
   */
  async succeed(before: Process, next: Process, info: ProcessInfo): Promise<void> {
    if (this.#lookedAt >= next.startedAt) return
    if ('path' in this.#settings.socket.to && (await isSuccessorOf(info, before.pid))) return
    this.#doubtedAt = next.startedAt
  }

  /** Why earlier processes may hold work unseen; undefined if that is excluded. */
  blindness(): Blindness | undefined {
    const facts = this.#facts
    if (facts === undefined || this.#hasMaster) return undefined
    const { doubt } = this
    if (doubt !== undefined && typeof this.#settings.oldWorkers === 'object')
      return { why: doubt, refuses: true }
    if (this.hasPassed(this.#bornAt)) return undefined
    const label = this.#label
    const isSingle = this.#neighbours.length === 0
    const { oldWorkers } = this.#settings
    const refuses = oldWorkers !== 'accept'
    if (facts.mworker === undefined) {
      const why = `${label} can't be asked for old workers at level ${facts.level}, give the master socket (haproxy -S) as 'master'`
      return { why, refuses }
    }
    if (facts.mworker) {
      if (facts.neverReloaded && !this.#lost && isSingle) return undefined
      const why = `HAProxy at ${label} runs under a master (-W), and old workers of an earlier reload would not be seen: give the path of its master socket (haproxy -S) as 'master', or set oldWorkers: { within: <your hard-stop-after> } or 'accept'`
      return { why, refuses }
    }
    if (this.#alone && isSingle) return undefined
    const beside = isSingle
      ? ''
      : ` (another haproxy with its configuration runs: ${this.#neighbours.join(', ')})`
    const why = `HAProxy at ${label} runs without a master, so a process that it replaced (haproxy -sf) would not be seen${beside}: run it under one (haproxy -W -S) and give its socket as 'master', or set oldWorkers: { within: <your hard-stop-after> }`
    return { why, refuses: typeof oldWorkers === 'object' }
  }

  /** Why a process may have come and gone unseen; undefined if it can't have, or must have ended. */
  get doubt(): string | undefined {
    if (this.#doubtedAt === undefined || this.hasPassed(this.#doubtedAt)) return undefined
    return `${this.#label} was reloaded, and perhaps twice between two looks: a process that was never seen may hold work. Give the master socket as 'master', or set oldWorkers: { within: <your hard-stop-after> }`
  }

  /** Whether the processes replaced by one that started then have ended, by the option oldWorkers. */
  hasPassed(startedAt: number): boolean {
    const { oldWorkers } = this.#settings
    if (typeof oldWorkers !== 'object') return false
    return this.#lookedAt - startedAt >= oldWorkers.within + WITHIN_MARGIN
  }

  /** Whether a process that can no longer be read counts as ended. */
  isGivenUp({ replacedAt }: Process): boolean {
    if (this.#settings.oldWorkers === 'accept') return true
    return replacedAt !== undefined && this.hasPassed(replacedAt)
  }
}
