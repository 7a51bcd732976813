import { incarnationOf, type ProcessInfo } from '../codec/info.js'
import { ProcessView } from '../read/read.js'
import { Renamed } from '../read/renamed.js'
import { Ages } from './ages.js'
import type { KeptConnection } from './kept-connection.js'

/** One HAProxy process that holds work, or may. */
export interface Process {
  /** Name of its scope: stable, and never another process's, also where pids repeat (containers). */
  readonly scope: string
  readonly pid: number
  /** When it started, in whole seconds since 1970, as text; empty where that is not known. */
  readonly start: string
  /** Process id of the master that listed it; undefined until one has. */
  master: number | undefined
  /** Undefined until it could be read once. */
  incarnation: string | undefined
  readonly view: ProcessView
  /** What its servers are called in the one that has replaced it. */
  readonly renamed: Renamed
  /** A connection that stays with it through a reload. */
  kept: KeptConnection | undefined
  /** By the clock of the calls: when it last answered. */
  seenAt: number
  /** By the clock of the calls: when it started, at the latest; later by the time for which it stood still since. */
  startedAt: number
  /** The same of the process that replaced it. */
  replacedAt: number | undefined
  /** It was seen to end. */
  ended: boolean
  /** Who can still come through it once it was replaced. */
  readonly door: Door
  /** How old what it holds is. */
  readonly ages: Ages
  /** When a reading was last given out in which it held work, by the member's key. */
  readonly busy: Map<string, number>
}

/** Whether an old process can still be asked for something by a client. */
export interface Door {
  /** No client can any more. It accepts no connection, so that stays so. */
  closed: boolean
  /** It was seen to accept no more connections. */
  stopping: boolean
  /** How many connections could bring another request, as last counted. */
  left: number
  /** How many of them carry a tunnel over HTTP/2, as last seen. */
  shared: number
  /** When its streams were last asked for, and how long that took. */
  askedAt: number
  cost: number
}

export function toProcess(info: ProcessInfo, now: number): Process {
  return {
    ...unreadProcess(info.pid, now),
    scope: `process ${info.pid}@${info.start}`,
    start: info.start,
    incarnation: incarnationOf(info),
    startedAt: now - info.lived,
  }
}

/** An old worker that the master lists and that could not be read yet. */
export function unreadProcess(pid: number, now: number): Process {
  return {
    scope: `process ${pid}`,
    pid,
    start: '',
    master: undefined,
    incarnation: undefined,
    view: new ProcessView(),
    renamed: new Renamed(),
    kept: undefined,
    seenAt: now,
    startedAt: now,
    replacedAt: undefined,
    ended: false,
    door: { closed: false, stopping: false, left: 0, shared: 0, askedAt: -Infinity, cost: 0 },
    ages: new Ages(),
    busy: new Map(),
  }
}

/**
 * For how long a process has not lived since it was last looked at (SIGSTOP, a paused VM), in milliseconds. What
 * ends by its clock, as a predecessor does by `hard-stop-after`, ends later by that.
 *
 * @param lookedAt - when the look was asked for: its answer may have come much later
 * @param silent - for how long it did not answer
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

/** Notes what a reading that is given out says of it. */
export function noteWork(process: Process, key: string, work: number, now: number): void {
  if (work > 0) process.busy.set(key, now)
  else process.busy.delete(key)
}

/** A member under drain is looked at again within that time, whatever its cadence, ms. */
const LOOKED_AT = 2_000

/**
 * Whether the last reading of every member that is looked at held no work there. One that is not looked at
 * any more (its drain is over, it serves again) says nothing new and must not count.
 */
export function isSettled(process: Process, now: number): boolean {
  return [...process.busy.values()].every((at) => at < now - LOOKED_AT)
}
