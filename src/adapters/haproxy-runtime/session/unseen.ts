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
  /** Its arguments name no process that it has replaced. */
  #alone = false
  #neverReloaded = false
  /** When a process started that may have replaced one which was never seen; by the same clock. */
  #doubtedAt: number | undefined

  readonly #local: LocalProcesses
  /** The process that was read last. */
  #serves: ProcessInfo | undefined
  /**
   * Other processes with its configuration: no argument names a process that was told to finish its work (SIGUSR1).
   */
  #neighbours: readonly number[] = []
  /** The system tells them. */
  #isShown = false
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
    this.#neverReloaded = facts.neverReloaded
    await this.#meet(facts.info, now)
  }

  /** A process was replaced that there is no way to. Where the system shows it, it is waited for. */
  async lose(next: ProcessInfo, now: number): Promise<void> {
    await this.#meet(next, now)
    // It was told to stop after the next one had read its configuration, which can take longer than `within`.
    this.#bornAt = now
    this.#neverReloaded = this.#alone
    if (!this.#isShown) this.#lost = true
  }

  async #meet(info: ProcessInfo, now: number): Promise<void> {
    this.#bornAt = now - info.lived
    this.#alone = this.#isLocal && (await startedAlone(info))
    this.#serves = info
    const neighbours = this.#hasMaster ? undefined : await this.#local.neighbours(info)
    this.#isShown = neighbours !== undefined
    this.#neighbours = neighbours ?? []
  }

  /** Over TCP the process may be on another machine, where that pid is another process. */
  get #isLocal(): boolean {
    return 'path' in this.#settings.socket.to
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

  #without(pid: number): void {
    this.#neighbours = this.#neighbours.filter((one) => one !== pid)
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
   * A process was replaced. Two reloads may lie between two looks, and what came and went in between may hold
   * work for longer than what was seen. Excluded where the first of them still served when the last had
   * started already, or where the arguments of that one name the first alone; else it is one of the neighbours,
   * where the system shows them.
   *
   * @param known - process ids of those that are looked at one by one
   */
  async succeed(
    before: Process,
    next: Process,
    { info, known, now }: { info: ProcessInfo; known: readonly number[]; now: number },
  ): Promise<void> {
    this.#without(next.pid) // met before it served
    if (this.#lookedAt >= next.startedAt) return
    if (this.#isLocal && (await isSuccessorOf(info, before.pid))) return
    if (!this.#isShown || !(await this.#meetNext(before, info, known, now)))
      this.#doubtedAt = next.startedAt
  }

  /** @returns whether the system shows what came and went in between, where that is still there */
  async #meetNext(
    before: Process,
    info: ProcessInfo,
    known: readonly number[],
    now: number,
  ): Promise<boolean> {
    const alone = this.#alone
    await this.#meet(info, now)
    for (const pid of [before.pid, ...known]) this.#without(pid)
    // A restart: it has replaced nothing.
    const isFresh = this.#alone && this.#isShown
    if (isFresh) this.#neverReloaded = true
    else this.#alone = alone
    // The workers of one master are no neighbours.
    return isFresh || (this.#isShown && this.#facts?.mworker === false)
  }

  /**
   * Whether every process that may hold work is known, without a master: what is not among them has ended.
   * A drain that is resumed, and one that goes by steps, knows processes that this provider has never met.
   */
  get knowsAll(): boolean {
    const { oldWorkers } = this.#settings
    if (this.#facts === undefined || this.#hasMaster) return false
    if (oldWorkers === 'accept' || this.hasPassed(this.#bornAt)) return true
    if (this.#facts.mworker !== false || this.#lost || this.doubt !== undefined) return false
    return this.#isShown && this.#neighbours.length === 0
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
      if (this.#neverReloaded && !this.#lost && isSingle) return undefined
      const why = `HAProxy at ${label} runs under a master (-W), and old workers of an earlier reload would not be seen: give the path of its master socket (haproxy -S) as 'master', or set oldWorkers: { within: <your hard-stop-after> } or 'accept'`
      return { why, refuses }
    }
    if (this.#alone && !this.#lost && isSingle) return undefined
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
