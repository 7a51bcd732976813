import { incarnationOf, type ProcessInfo } from '../codec/info.js'
import { ProcessView, type Wanted } from '../read/read.js'
import { refKey } from '../../../provider/member-ref.js'
import { refsOf, Renamed } from '../read/renamed.js'
import { Unconnected } from '../read/unconnected.js'
import { DrainableError } from '../../../provider/error.js'
import type { CallContext } from '../../../provider/contract.js'
import { Ages } from './ages.js'
import { AnotherProcess, keptChannel } from './channel.js'
import type { KeptConnection } from './kept-connection.js'
import { Strays } from './strays.js'

/** A HAProxy process that holds work, or may. */
export interface Process {
  /** The name of its scope: stable, and never used for another process, even if pids repeat (containers). */
  readonly scope: string
  readonly pid: number
  /** When it started, in whole seconds since 1970, as text; empty if not known. */
  readonly start: string
  /** The process id of the master that listed it; undefined until one has. */
  master: number | undefined
  /** Its incarnation; undefined until it was read once. */
  incarnation: string | undefined
  readonly view: ProcessView
  /** What its servers are called in the one that has replaced it. */
  readonly renamed: Renamed
  /** A connection that stays with it through a reload. */
  kept: KeptConnection | undefined
  /** When it last answered, by the clock of the calls. */
  seenAt: number
  /**
   * The latest time when it can have started, by the clock of the calls; moved by the time for which it stood still
   * since.
   */
  startedAt: number
  /** The same for the process that replaced it. */
  replacedAt: number | undefined
  /** Whether it was seen to end. */
  ended: boolean
  /** Whether clients can still come through it once it was replaced. */
  readonly door: Door
  /** The ages of its work. */
  readonly ages: Ages
  /** Work at its servers' addresses that stands in the rows of others. */
  readonly strays: Strays
  /** Requests that wait for their connection and are in no count. */
  readonly unconnected: Unconnected
  /** When a reading with its work was last returned, by the member's key. */
  readonly busy: Map<string, number>
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
    start: info.start,
    incarnation: incarnationOf(info),
    startedAt: now - info.lived,
  }
}

/** Makes the record of an old worker that the master lists and that was not read yet. */
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
    strays: new Strays(),
    unconnected: new Unconnected(),
    busy: new Map(),
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

/** Notes the work in a returned reading. */
export function noteWork(process: Process, key: string, work: number, now: number): void {
  if (work > 0) process.busy.set(key, now)
  else process.busy.delete(key)
}

/** For so long after its last look the work of a member counts that this look is not for, ms. */
const LOOKED_AT = 10_000

/**
 * Whether the last reading of every watched member shows no work there. A member that is no longer looked at (its
 * drain is over, it serves again) does not count.
 *
 * @param watched - the members that this look is for: their next reading tells of their zero, however late it is
 */
export function isSettled(process: Process, watched: Wanted, now: number): boolean {
  const own = new Set(refsOf(watched).map((ref) => refKey(ref)))
  return [...process.busy].every(([key, at]) => !own.has(key) && at < now - LOOKED_AT)
}

/** Makes it the connection that is kept to that process. @throws `CONFLICT` if it leads to another one */
export async function keep(
  process: Process,
  kept: KeptConnection,
  label: string,
  ctx: CallContext,
): Promise<void> {
  try {
    const { info } = await keptChannel(kept).run([], ctx)
    if (toProcess(info, 0).scope !== process.scope) throw new AnotherProcess(info)
    process.kept = kept
  } catch (error) {
    kept.close()
    if (!(error instanceof AnotherProcess)) throw error
    const data = { provider: 'haproxy-runtime', cause: error }
    throw new DrainableError('CONFLICT', `${label} is being reloaded`, data)
  }
}
