import type { ProcessInfo } from '../codec/info.js'
import type { Settings } from '../options.js'
import type { Facts } from './facts.js'
import { type LocalProcesses, NOT_LOCAL } from './local-processes.js'
import type { Process } from './process.js'
import { isSuccessorOf, startedAlone } from './started-alone.js'

/** Old processes are told to go only once the new one runs: the margin on top of `within`, ms. */
const WITHIN_MARGIN = 2_000
/** The system is asked for processes beside the one that serves at most that often, ms. */
const NEIGHBOURS_LOOK = 250

/** What is not known of the processes of before. */
export interface Blindness {
  readonly why: string
  /** Whether a drain is refused for it before any change; else idle is said, and is not verified. */
  readonly refuses: boolean
}

/**
 * What can't be seen without a way to the processes of before: whether there are any. Under a master whose
 * socket is not known it may be known that it never reloaded. Without a master nothing says that there was
 * a reload (`-sf`); only the arguments of the process, and its age, can exclude one.
 */
export class Unseen {
  readonly #settings: Settings
  readonly #label: string
  #facts: Facts | undefined
  #hasMaster = false
  /** A process was replaced, and there is no way to it. */
  #lost = false
  /** By the clock of the calls: when the oldest process whose predecessors can't be seen started, at the latest. */
  #bornAt = 0
  /** By the same clock: when the last look at the process that serves was asked for. */
  #lookedAt = -Infinity
  /** Its arguments name no process that it has replaced. */
  #alone = false
  #neverReloaded = false
  /** When a process started that may have replaced one which was never seen; by the same clock. */
  #doubtedAt: number | undefined

  readonly #local: LocalProcesses
  /** The process that was met last. */
  #serves: ProcessInfo | undefined
  /** Others with its configuration: what was told to finish its work (SIGUSR1) is named by no argument. */
  #neighbours: readonly number[] = []
  /** The system tells them. */
  #isShown = false
  #neighboursAt = -Infinity

  constructor(settings: Settings, label: string, local: LocalProcesses = NOT_LOCAL) {
    this.#settings = settings
    this.#label = label
    this.#local = local
  }

  /** Takes in what was asked of the first process that was seen. */
  async learn(facts: Facts, hasMaster: boolean, now: number): Promise<void> {
    this.#facts = facts
    this.#hasMaster = hasMaster
    this.#neverReloaded = facts.neverReloaded
    await this.#meet(facts.info, now)
  }

  /** A process was replaced that there is no way to. Where the system shows it, it is waited for. */
  async lose(next: ProcessInfo, now: number): Promise<void> {
    await this.#meet(next, now)
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

  /** Asks the system which of the processes beside it are still there. */
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
   * Takes in a look at the process that serves. What time has passed is said as of that look, and not as of
   * now: HAProxy may have stood still since (a paused VM), and its `hard-stop-after` with it.
   *
   * @param stood - for how long it did since the look before, ms: nothing of before ends sooner for that
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

  /** Why processes of before may hold work unseen; undefined where that is excluded. */
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
      const why = `whether ${label} has old workers can't be asked at level ${facts.level}, give the master socket (haproxy -S) as 'master'`
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

  /** Why another process may have come and gone unseen; undefined where it can't have, or must have ended. */
  get doubt(): string | undefined {
    if (this.#doubtedAt === undefined || this.hasPassed(this.#doubtedAt)) return undefined
    return `${this.#label} was reloaded, and perhaps twice between two looks: a process that was never seen may hold work. Give the master socket as 'master', or set oldWorkers: { within: <your hard-stop-after> }`
  }

  /** Whether what was replaced by a process that started then has ended, as the option oldWorkers says. */
  hasPassed(startedAt: number): boolean {
    const { oldWorkers } = this.#settings
    if (typeof oldWorkers !== 'object') return false
    return this.#lookedAt - startedAt >= oldWorkers.within + WITHIN_MARGIN
  }

  /** Whether a process that can't be read any more counts as ended. */
  isGivenUp({ replacedAt }: Process): boolean {
    if (this.#settings.oldWorkers === 'accept') return true
    return replacedAt !== undefined && this.hasPassed(replacedAt)
  }
}
