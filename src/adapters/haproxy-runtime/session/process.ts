import { incarnationOf, type ProcessInfo } from '../codec/info.js'
import { ownState } from '../codec/state.js'
import { type ProcessSight, ProcessView } from '../read/read.js'
import { Renamed } from '../read/renamed.js'
import { Unconnected } from '../read/unconnected.js'
import { Ages } from './ages.js'
import type { Stay } from './stay.js'
import { Strays } from './strays.js'

/** A HAProxy process that holds work, or may. */
export interface Process {
  /** The name of its scope: stable, and never used for another process, even if pids repeat (containers). */
  readonly scope: string
  readonly pid: number
  /** The process id of the master that listed it; undefined until one has. */
  master: number | undefined
  /** Its incarnation; undefined until it was read once. */
  incarnation: string | undefined
  readonly view: ProcessView
  /** What its servers are called in the one that has replaced it. */
  readonly renamed: Renamed
  /** A connection that keeps it alive until its last request was seen to end. */
  stay: Stay | undefined
  /** Whether its last look showed no work of any member that it was for. */
  isQuiet: boolean
  /**
   * The latest time when it can have started, by the clock of the calls; moved by the time for which it stood still
   * since.
   */
  startedAt: number
  /** When it was seen to be replaced, in the same way; undefined while it serves. */
  replacedAt: number | undefined
  /** Whether it took over the states of the one before, as by a state file; undefined if that was not seen. */
  keptStates: boolean | undefined
  /** Whether clients can still come through it once it was replaced. */
  readonly door: Door
  /** The ages of its work. */
  readonly ages: Ages
  /** Work at its servers' addresses that stands in the rows of others. */
  readonly strays: Strays
  /** Requests that wait for their connection and are in no count. */
  readonly unconnected: Unconnected
}

/** Whether a client can still send a request through an old process. */
export interface Door {
  /** Whether no client can any more. It accepts no connections, so this stays true. */
  closed: boolean
  /** Whether it was seen to accept no more connections. */
  stopping: boolean
  /** How many connections could bring another request, as last counted. */
  left: number
  /** How many of them carry a tunnel over HTTP/2, as last seen. */
  shared: number
  /** When its streams were last listed, and how long that took. */
  askedAt: number
  cost: number
}

export function toProcess(info: ProcessInfo, now: number): Process {
  return {
    ...unreadProcess(info.pid, now),
    scope: `process ${info.pid}@${info.start}`,
    incarnation: incarnationOf(info),
    startedAt: now - info.lived,
  }
}

/** Makes the record of an old worker that the master lists and that was not read yet. */
export function unreadProcess(pid: number, now: number): Process {
  return {
    scope: `process ${pid}`,
    pid,
    master: undefined,
    incarnation: undefined,
    view: new ProcessView(),
    renamed: new Renamed(),
    stay: undefined,
    isQuiet: false,
    startedAt: now,
    replacedAt: undefined,
    keptStates: undefined,
    door: { closed: false, stopping: false, left: 0, shared: 0, askedAt: -Infinity, cost: 0 },
    ages: new Ages(),
    strays: new Strays(),
    unconnected: new Unconnected(),
  }
}

/**
 * How long a process has not run since its last look (SIGSTOP, a paused VM), in milliseconds. A deadline on its
 * clock, such as a predecessor's `hard-stop-after`, comes later by that time.
 *
 * @param lookedAt - when the look was asked for: its answer can have come much later
 * @param silent - how long it did not answer
 */
export function noteStandstill(
  process: Process,
  lookedAt: number,
  lived: number,
  silent: number,
): number {
  const told = lived === 0 ? 0 : lookedAt - lived - process.startedAt
  const stood = Math.max(told, silent)
  process.startedAt += stood
  return stood
}

/** Notes whether a process has the states that were set in the one that it replaced. */
export function noteStates(process: Process, before: Process, { members }: ProcessSight): void {
  for (const { ref, own } of members.values()) {
    const was = before.view.known(ref)
    if (was === undefined || ownState(was.admin) === 'ready') continue
    process.keptStates = (process.keptStates ?? true) && own !== 'ready'
  }
}
