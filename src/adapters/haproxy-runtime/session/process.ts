import { incarnationOf, type ProcessInfo } from '../codec/info.js'
import type { KeptConnection } from './kept-connection.js'
import { ProcessView } from '../read/read.js'

/** One HAProxy process that holds work, or may. */
export interface Process {
  /** Name of its scope: stable, and never another process's, also where pids repeat (containers). */
  readonly scope: string
  readonly pid: number
  /** Undefined until it could be read once. */
  incarnation: string | undefined
  readonly view: ProcessView
  /** A connection that stays with it through a reload. */
  kept: KeptConnection | undefined
  /** By the clock of the calls: when it last answered. */
  seenAt: number
  /** By the clock of the calls: when it started, at the latest. */
  readonly startedAt: number
  /** It was seen to end. */
  ended: boolean
}

export function toProcess(info: ProcessInfo, now: number): Process {
  return {
    scope: `process ${info.pid}@${info.start}`,
    pid: info.pid,
    incarnation: incarnationOf(info),
    view: new ProcessView(),
    kept: undefined,
    seenAt: now,
    startedAt: now - info.uptime * 1_000,
    ended: false,
  }
}

/** An old worker that the master lists and that could not be read yet. */
export function unreadProcess(pid: number, now: number): Process {
  return {
    scope: `process ${pid}`,
    pid,
    incarnation: undefined,
    view: new ProcessView(),
    kept: undefined,
    seenAt: now,
    startedAt: now,
    ended: false,
  }
}
