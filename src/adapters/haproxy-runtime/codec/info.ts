/** Decoders of `show info`, `show proc` and the small replies around them. */
import { malformed } from './replies.js'

/** One HAProxy process, as `show info` describes it. */
export interface ProcessInfo {
  readonly version: string
  readonly node: string
  readonly pid: number
  /** Whole seconds since 1970, as text; empty on versions that don't say. */
  readonly start: string
  /**
   * For how long it has lived by its own clock, in milliseconds. That clock leaves out what the process
   * did not live through (SIGSTOP, a paused VM), exactly as the timers of its retries do: seen on 2.6,
   * 3.0 and 3.2.
   */
  readonly lived: number
  /** It was told to go: it finishes its work and takes no new connections. */
  readonly stopping: boolean
  /** Connections of clients (CLI connections are not among them). */
  readonly connections: number
}

/**
 * Reads a reply of `show info float`.
 *
 * @throws `MALFORMED_REPLY` where it is something else
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

/** One field of about a hundred: they are not all cut out, as this is done at every look. */
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

/** Whether a text is a count that a number holds. */
export function isDigits(text: string): boolean {
  return /^\d{1,16}$/.test(text) && Number.isSafeInteger(Number(text))
}

/**
 * What tells one process from every other: pids repeat in containers, so the node and the start
 * time belong to it.
 */
export function incarnationOf(info: Pick<ProcessInfo, 'node' | 'pid' | 'start'>): string {
  return `${info.node}/${info.pid}/${info.start}`
}

/** The workers a master knows. */
export interface Workers {
  /** Process id of the master: it keeps it through reloads. */
  readonly master: number
  readonly current: readonly number[]
  /** Replaced by a reload, still there. An old worker leaves the list when its last connection ends. */
  readonly old: readonly number[]
  /** Reloads of this master since its start. */
  readonly reloads: number
}

/**
 * Reads a reply of `show proc` (master socket).
 *
 * @throws `MALFORMED_REPLY` where it is something else
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
