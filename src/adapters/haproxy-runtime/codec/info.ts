/** Decoders of `show info`, `show proc` and the small replies around them. */
import { malformed } from './replies.js'

/** One HAProxy process, as `show info` describes it. */
export interface ProcessInfo {
  readonly version: string
  readonly node: string
  readonly pid: number
  /** Its start, in whole seconds since 1970, as text; empty on versions that do not report it. */
  readonly start: string
  /**
   * How long it has run by its own clock, in milliseconds. That clock excludes time in which the process did not run
   * (SIGSTOP, a paused VM), exactly as the timers of its retries do: seen on 2.6, 3.0 and 3.2.
   */
  readonly lived: number
  /** Whether it is stopping: it finishes its work and takes no new connections. */
  readonly stopping: boolean
  /** Connections of clients (CLI connections are not among them). */
  readonly connections: number
}

/**
 * Reads a reply of `show info float`.
 *
 * @throws `MALFORMED_REPLY` if it is something else
 */
export function parseInfo(reply: string): ProcessInfo {
  const lines = `\n${reply}\n`
  const number = (name: string, fits: (text: string) => boolean): number | undefined => {
    const text = fieldOf(lines, name)
    if (text === undefined || fits(text)) return text === undefined ? undefined : Number(text)
    throw malformed(`a number in ${name} of 'show info'`, text)
  }
  const count = (name: string): number | undefined => number(name, isDigits)
  const seconds = (name: string): number | undefined => number(name, isSeconds)
  const pid = count('Pid') ?? 0
  const version = fieldOf(lines, 'Version') ?? ''
  if (version === '' || pid === 0) {
    throw malformed("the reply of 'show info' with Version and Pid", reply)
  }
  return {
    version,
    pid,
    node: fieldOf(lines, 'node') ?? '',
    start: String(floored(seconds('Start_time_sec')) ?? ''),
    lived: (seconds('Uptime_sec') ?? 0) * 1_000,
    stopping: count('Stopping') === 1,
    connections: count('CurrConns') ?? Infinity,
  }
}

/** Reads one of about a hundred fields; it does not parse them all, because every look does this. */
function fieldOf(lines: string, name: string): string | undefined {
  const key = `\n${name}:`
  const at = lines.indexOf(key)
  if (at === -1) return undefined
  const from = at + key.length
  return lines.slice(from, lines.indexOf('\n', from)).trim()
}

function floored(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : Math.floor(seconds)
}

/** Whole seconds, or with the fraction that `float` brings. */
function isSeconds(text: string): boolean {
  return /^\d{1,12}(\.\d{1,9})?$/.test(text)
}

/** Whether a text is a count that a number can represent. */
export function isDigits(text: string): boolean {
  return /^\d{1,16}$/.test(text) && Number.isSafeInteger(Number(text))
}

/**
 * Identifies one process among all: it includes the node and the start time, because pids repeat in containers.
 */
export function incarnationOf(info: Pick<ProcessInfo, 'node' | 'pid' | 'start'>): string {
  return `${info.node}/${info.pid}/${info.start}`
}

/** The workers a master knows. */
export interface Workers {
  /** The process id of the master, which stays the same through reloads. */
  readonly master: number
  readonly current: readonly number[]
  /**
   * Workers that a reload replaced and that still run. An old worker leaves the list when its last connection ends.
   */
  readonly old: readonly number[]
  /** Reloads of this master since its start. */
  readonly reloads: number
}

/**
 * Reads a reply of `show proc` (master socket).
 *
 * @throws `MALFORMED_REPLY` if it is something else
 */
export function parseProc(reply: string): Workers {
  const current: number[] = []
  const old: number[] = []
  let reloads = 0
  let master = 0
  let section = ''
  if (!/^#<PID>/m.test(reply)) throw malformed("the reply of 'show proc' of a master socket", reply)
  for (const line of reply.split('\n')) {
    if (line.startsWith('# ')) section = line.slice(2).trim()
    if (line.startsWith('#') || line.trim() === '' || section.endsWith('programs')) continue
    const [pid = '', type = '', count = ''] = line.trim().split(/\s+/)
    if (!PROCESSES.includes(type) || !isDigits(pid) || !isDigits(count)) {
      throw malformed("a process in a line of 'show proc'", line)
    }
    if (type === 'master') {
      reloads = Number(count)
      master = Number(pid)
    } else (section === 'old workers' ? old : current).push(Number(pid))
  }
  return { master, current, old, reloads }
}

/** Programs have their own names here, in a section of their own. */
const PROCESSES: readonly string[] = ['master', 'worker']

/** The value in a reply of `show env NAME`; undefined where the variable is not set. */
export function parseEnv(reply: string, name: string): string | undefined {
  const line = reply.split('\n').find((text) => text.startsWith(`${name}=`))
  return line?.slice(name.length + 1)
}
