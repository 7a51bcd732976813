import type { ProcessInfo } from '../codec/info.js'
import type { Settings } from '../options.js'
import type { Facts } from './facts.js'
import type { Process } from './process.js'
import { startedAlone } from './started-alone.js'

/** Old processes are told to go only once the new one runs: the margin on top of `within`, ms. */
const WITHIN_MARGIN = 2_000

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
  #alone = false
  /** Replaced between two looks so far apart that a whole process may have come and gone. */
  #doubtful: ReadonlySet<string> = new Set()

  constructor(settings: Settings, label: string) {
    this.#settings = settings
    this.#label = label
  }

  /** Takes in what was asked of the first process that was seen. */
  async learn(facts: Facts, hasMaster: boolean, now: number): Promise<void> {
    this.#facts = facts
    this.#hasMaster = hasMaster
    await this.#meet(facts.info, now)
  }

  /** A process was replaced that there is no way to. */
  async lose(next: ProcessInfo, now: number): Promise<void> {
    this.#lost = true
    await this.#meet(next, now)
  }

  async #meet(info: ProcessInfo, now: number): Promise<void> {
    this.#bornAt = now - info.lived
    // Over TCP the process may be on another machine, where that pid is another process.
    const isLocal = 'path' in this.#settings.socket.to
    const plain = this.#facts?.mworker === false && isLocal && !this.#hasMaster
    this.#alone = plain && !this.#lost && (await startedAlone(info))
  }

  /** A process was replaced between two looks so far apart that others may have come and gone. */
  doubt(scope: string): void {
    this.#doubtful = new Set([...this.#doubtful, scope])
  }

  /** Why processes of before may hold work unseen; undefined where that is excluded. */
  blindness(now: number): Blindness | undefined {
    const facts = this.#facts
    if (facts === undefined || this.#hasMaster || this.hasPassed(this.#bornAt, now))
      return undefined
    const label = this.#label
    const { oldWorkers } = this.#settings
    const refuses = oldWorkers !== 'accept'
    if (facts.mworker === undefined) {
      const why = `whether ${label} has old workers can't be asked at level ${facts.level}, give the master socket (haproxy -S) as 'master'`
      return { why, refuses }
    }
    if (facts.mworker) {
      if (facts.neverReloaded && !this.#lost) return undefined
      const why = `HAProxy at ${label} runs under a master (-W), and old workers of an earlier reload would not be seen: give the path of its master socket (haproxy -S) as 'master', or set oldWorkers: { within: <your hard-stop-after> } or 'accept'`
      return { why, refuses }
    }
    if (this.#alone) return undefined
    const why = `HAProxy at ${label} runs without a master, so a process that it replaced (haproxy -sf) would not be seen: run it under one (haproxy -W -S) and give its socket as 'master', or set oldWorkers: { within: <your hard-stop-after> }`
    return { why, refuses: typeof oldWorkers === 'object' }
  }

  /** Why another process may have come and gone beside one of these unseen; undefined where it can't have. */
  doubtOf(scopes: readonly string[]): string | undefined {
    if (!scopes.some((scope) => this.#doubtful.has(scope))) return undefined
    return `two looks were too far apart while ${this.#label} was reloaded, another process may have come and gone between them: give the master socket as 'master'`
  }

  /** Whether what was replaced by a process that started then has ended, as the option oldWorkers says. */
  hasPassed(startedAt: number, now: number): boolean {
    const { oldWorkers } = this.#settings
    return typeof oldWorkers === 'object' && now - startedAt >= oldWorkers.within + WITHIN_MARGIN
  }

  /** Whether a process that can't be read any more counts as ended. */
  isGivenUp({ replacedAt }: Process, now: number): boolean {
    if (this.#settings.oldWorkers === 'accept') return true
    return replacedAt !== undefined && this.hasPassed(replacedAt, now)
  }
}
