import { DrainableError } from '../../../provider/error.js'
import { quote } from '../../../provider/quote.js'
import { PROVIDER } from '../name.js'

/**
 * Framing of the HAProxy Runtime API (stats socket and master socket), 2.6 to 3.2.
 *
 * - One line goes in, the commands in it are separated by `;` and answered in order; an error of one
 *   does not stop the rest. The server then closes (stats socket), or waits for more (master socket).
 * - A reply ends with an empty line, and a quoted cell of `show stat` can have one on 2.6; a silent success is a single `\n`.
 * - HAProxy 2.6 ends every reply of `del server`, some of `add server` and weight errors with one `
 * ` and no empty line: these commands are sent alone on a connection that is read to its close, never in a batch.
 * - An empty reply never means zero: a `show stat` whose filter matches nothing answers only the header.
 */

/** Largest reply that is read, in bytes: 10,000 servers are 3 MB. */
export const MAX_REPLY = 64 * 1024 * 1024

/**
 * Makes the error of a reply that can't be read.
 *
 * @param what - what was expected
 * @param text - what came
 */
export function malformed(what: string, text: string): DrainableError {
  return new DrainableError(
    'MALFORMED_REPLY',
    `expected ${what} from the HAProxy Runtime API, found '${quote(text)}'`,
    { provider: PROVIDER },
  )
}

/** Makes the error of a reply that was cut off. */
export function cutShort(words: string): DrainableError {
  return new DrainableError('CONNECTION_LOST', words, { provider: PROVIDER })
}

/** Splits the stream of one connection into replies, for any chunks. */
export class ReplySplitter {
  #rest = ''
  /** The position up to which no end was found, so that a long reply is not searched again with each chunk. */
  #seen = 0

  /** Returns the replies that are complete now, without their empty line. */
  push(chunk: string): string[] {
    this.#rest += chunk
    const replies: string[] = []
    let at = 0
    while (at < this.#rest.length) {
      if (this.#rest[at] === '\n') {
        replies.push('')
        at += 1
        continue
      }
      const end = this.#endOf(at)
      if (end === -1) break
      replies.push(this.#rest.slice(at, end))
      at = end + 2
    }
    this.#rest = this.#rest.slice(at)
    this.#seen = this.#rest.length
    return replies
  }

  /** The text after the last complete reply. */
  get rest(): string {
    return this.#rest
  }

  /** Where the reply that begins there ends; -1 where it is not complete. */
  #endOf(at: number): number {
    let end = this.#rest.indexOf('\n\n', Math.max(at, this.#seen - 1))
    while (end !== -1 && isInCell(this.#rest.slice(at, end)))
      end = this.#rest.indexOf('\n\n', end + 1)
    return end
  }
}

const STAT_HEAD = '# pxname,'

/**
 * Whether a text ends in a quoted cell of the CSV of `show stat`. The words of a health check (`on-error`, with what the
 * server said) can have an empty line on 2.6; 3.0 and later write blanks in its place.
 */
function isInCell(text: string): boolean {
  return text.startsWith(STAT_HEAD) && text.split('"').length % 2 === 0
}

/**
 * Splits the replies to a line of `count` read commands: each ends with an empty line, and a reply without it was
 * cut, even if it looks complete.
 *
 * @throws `CONNECTION_LOST` if some are missing, with the text that came
 */
export function splitReplies(text: string, count: number): string[] {
  const splitter = new ReplySplitter()
  const replies = splitter.push(text)
  if (replies.length >= count) return replies.slice(0, count)
  throw cutShort(
    `HAProxy closed the connection after ${replies.length} of ${count} replies, the last bytes were '${quote(text.slice(-200))}'${isHttp(text) ? HTTP_THERE : ''}`,
  )
}

const HTTP_THERE =
  "; an HTTP server answers there: expected the 'stats socket', not a frontend or a stats page"

/** Whether a frontend, or the stats page, has answered a line that is not HTTP. */
function isHttp(text: string): boolean {
  return /^(HTTP\/\d|\S* ?400 Bad request)|<html/i.test(text)
}

/**
 * Splits the reply to `show info` and a changing line, read to the close: on 2.6 not every reply ends with an empty
 * line, so its lines are counted.
 *
 * @returns the reply of `show info`, and the text after it
 * @throws `CONNECTION_LOST` if the end of one is missing: a cut success can look like no reply, a cut refusal like
 *   another one
 */
export function splitChange(
  text: string,
  commands: number,
): { readonly info: string; readonly reply: string } {
  const end = text.indexOf('\n\n')
  const rest = text.slice(end + 2)
  const lines = rest.split('\n').length - 1
  if (end === -1 || lines < commands || !rest.endsWith('\n')) {
    throw cutShort(
      `HAProxy closed the connection before the end of its answer to a change, the last bytes were '${quote(text.slice(-200))}'`,
    )
  }
  return { info: text.slice(0, end), reply: rest.replace(/^\n+|\n+$/g, '') } // silent successes before it are empty lines
}

const GONE_WITHIN = 500
/**
 * The master socket's reply about a worker that has gone: one `
 * `, and on 3.x the connection stays open.
 */
const GONE = /^Can't find the target PID matching the prefix/m

/** Whether the master reports that the addressed worker no longer exists. */
export function isWorkerGone(text: string): boolean {
  return GONE.test(text.slice(-GONE_WITHIN)) // nothing follows it
}

/** Whether a line was refused as a whole because it is longer than `tune.bufsize`; none of its commands ran. */
export function isLineTooLong(text: string): boolean {
  return text.startsWith('The command line is too big')
}

/** Whether the peer does not know the first command of a line. */
export function isUnknownCommand(text: string): boolean {
  return text.startsWith('Unknown command')
}

// --- `show info`, `show proc` and the small replies around them

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
}

/**
 * Reads a reply of `show proc` (master socket).
 *
 * @throws `MALFORMED_REPLY` if it is something else
 */
export function parseProc(reply: string): Workers {
  const current: number[] = []
  const old: number[] = []
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
    if (type === 'master') master = Number(pid)
    else (section === 'old workers' ? old : current).push(Number(pid))
  }
  return { master, current, old }
}

/** Programs have their own names here, in a section of their own. */
const PROCESSES: readonly string[] = ['master', 'worker']

/** The value in a reply of `show env NAME`; undefined where the variable is not set. */
export function parseEnv(reply: string, name: string): string | undefined {
  const line = reply.split('\n').find((text) => text.startsWith(`${name}=`))
  return line?.slice(name.length + 1)
}
