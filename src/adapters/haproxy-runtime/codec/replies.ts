/**
 * Framing of the HAProxy Runtime API (stats socket and master socket), 2.6 to 3.2.
 *
 * - One line goes in, the commands in it are separated by `;` and answered in order; an error of one
 *   does not stop the rest. The server then closes (stats socket), or waits for more (master socket).
 * - A reply ends with an empty line; a silent success is a single `\n`.
 * - HAProxy 2.6 ends every reply of `del server`, some of `add server` and weight errors with one `
 * ` and no empty line: these commands are sent alone on a connection that is read to its close, never in a batch.
 * - An empty reply never means zero: a `show stat` whose filter matches nothing answers only the header.
 */
import { quote } from '../../../provider/quote.js'
import { DrainableError } from '../../../provider/error.js'

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
    { provider: 'haproxy-runtime' },
  )
}

/** Makes the error of a reply that was cut off. */
export function cutShort(words: string): DrainableError {
  return new DrainableError('CONNECTION_LOST', words, { provider: 'haproxy-runtime' })
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
      const end = this.#rest.indexOf('\n\n', Math.max(at, this.#seen - 1))
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
