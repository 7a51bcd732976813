/**
 * Framing of the HAProxy Runtime API (stats socket and master socket), 2.6 to 3.2.
 *
 * - One line goes in, the commands in it are separated by `;` and answered in order; an error of one
 *   does not stop the rest. The server then closes (stats socket), or waits for more (master socket).
 * - A reply ends with an empty line; a silent success is a single `\n`.
 * - HAProxy 2.6 ends every reply of `del server`, some of `add server` and weight errors with one `\n`
 *   and no empty line: these go alone on a connection that is read to its close, never into a batch.
 * - In `prompt` mode (kept-open connections) each reply is followed by `> ` at the start of a line;
 *   3.2 prints one prompt a line, 2.6 and 3.0 one a command: one command a line is the same on all.
 * - "Nothing" never means zero: a `show stat` whose filter hits nothing answers the header alone.
 */
import { quote } from '../../../provider/quote.js'
import { DrainableError } from '../../../provider/error.js'

/** Largest reply that is read, in bytes: 10,000 servers are 3 MB. */
export const MAX_REPLY = 64 * 1024 * 1024

/**
 * A reply that can't be read.
 *
 * @param what - what was expected
 * @param text - what came
 */
export function malformed(what: string, text: string): DrainableError {
  return new DrainableError(
    'MALFORMED_REPLY',
    `expected ${what} from the HAProxy Runtime API, found '${quote(text)}'`,
    { provider: 'haproxy-runtime' },
  )
}

/** A reply that ends before its end. */
export function cutShort(words: string): DrainableError {
  return new DrainableError('CONNECTION_LOST', words, { provider: 'haproxy-runtime' })
}

/** Cuts the stream of one connection into replies, whatever its chunks. */
export class ReplySplitter {
  #rest = ''
  /** Up to where no end was found: a long reply is not looked through again with each chunk. */
  #seen = 0

  /** The replies that are complete now, without their empty line. */
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
      const end = this.#rest.indexOf('\n\n', Math.max(at, this.#seen - 1))
      if (end === -1) break
      replies.push(this.#rest.slice(at, end))
      at = end + 2
    }
    this.#rest = this.#rest.slice(at)
    this.#seen = this.#rest.length
    return replies
  }

  /** What came after the last complete reply. */
  get rest(): string {
    return this.#rest
  }
}

/**
 * The replies to a line of `count` commands that only read: each of them has its empty line, and one
 * without it was cut, however well it reads.
 *
 * @throws `CONNECTION_LOST` where some are missing, with what came
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

/** What a frontend, or the stats page, says to a line that is no HTTP. */
function isHttp(text: string): boolean {
  return /^(HTTP\/\d|\S* ?400 Bad request)|<html/i.test(text)
}

/**
 * The reply to a changing line that follows `show info`, read to the close: on 2.6 not every one has
 * its empty line, so its lines are counted.
 *
 * @returns the reply of `show info`, and what came after it
 * @throws `CONNECTION_LOST` where the end of one is missing: a cut success looks like none, a cut refusal like another
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

/** Cuts the stream of a connection in `prompt` mode into replies: each is followed by a prompt. */
export class PromptSplitter {
  #rest = ''
  /** Up to where no prompt was found. */
  #seen = 0

  /** The replies that are complete now. */
  push(chunk: string): string[] {
    this.#rest += chunk
    const replies: string[] = []
    for (;;) {
      const prompt = this.#rest.startsWith('> ')
        ? 0
        : this.#rest.indexOf('\n> ', Math.max(0, this.#seen - 2))
      this.#seen = prompt === -1 ? this.#rest.length : 0
      if (prompt === -1) return replies
      replies.push(this.#rest.slice(0, prompt).replace(/^\n+|\n+$/g, ''))
      this.#rest = this.#rest.slice(this.#rest.indexOf('> ', prompt) + 2)
    }
  }

  /** How much came since the last prompt. */
  get size(): number {
    return this.#rest.length
  }
}

const GONE_WITHIN = 500
/** Reply of the master socket about a worker that has gone: one `\n`, and on 3.x the connection stays open. */
const GONE = /^Can't find the target PID matching the prefix/m

/** Whether the master says that the addressed worker does not exist any more. */
export function isWorkerGone(text: string): boolean {
  return GONE.test(text.slice(-GONE_WITHIN)) // nothing follows it
}

/** Whether a line was refused as a whole because it is longer than `tune.bufsize`; nothing of it ran. */
export function isLineTooLong(text: string): boolean {
  return text.startsWith('The command line is too big')
}

/** Whether the first command of a line is unknown to what listens there. */
export function isUnknownCommand(text: string): boolean {
  return text.startsWith('Unknown command')
}
