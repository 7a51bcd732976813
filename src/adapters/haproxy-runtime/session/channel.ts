import { DrainableError } from '../../../provider/error.js'
import {
  isLineTooLong,
  isWorkerGone,
  malformed,
  ReplySplitter,
  splitChange,
  splitReplies,
} from '../codec/replies.js'
import { incarnationOf, parseInfo, type ProcessInfo } from '../codec/info.js'
import type { KeptConnection } from './kept-connection.js'
import type { RuntimeSocket } from './socket.js'

/** A way to ask one process read-only questions: one reply a command, in order. */
export interface Channel {
  /**
   * @throws {@link AnotherProcess} where another process answered, {@link WorkerGone} where it is
   * positively gone
   */
  run(commands: readonly string[], signal: AbortSignal): Promise<string[]>
}

/** The socket is served by another process now: a reload, or a restart. */
export class AnotherProcess extends Error {
  override readonly name = 'AnotherProcess'
  readonly info: ProcessInfo

  constructor(info: ProcessInfo) {
    super('another process answered')
    this.info = info
  }
}

/** The process does not exist any more. */
export class WorkerGone extends Error {
  override readonly name = 'WorkerGone'
}

/** A line stays below HAProxy's `tune.bufsize` (16,384 by default); a smaller one is found out. */
const LINE_LIMIT = 12_000
const SHORTEST_LINE = 500

/** Lines of at most `limit` characters, each beginning with `first`. */
function toLines(first: string, commands: readonly string[], limit: number): string[][] {
  const lines: string[][] = []
  let line = [first]
  let length = first.length
  for (const command of commands) {
    if (line.length > 1 && length + 1 + command.length > limit) {
      lines.push(line)
      line = [first]
      length = first.length
    }
    line.push(command)
    length += 1 + command.length
  }
  return [...lines, line]
}

/** Asks whoever serves the stats socket, and checks in the same connection that it is the expected process. */
export class StatsChannel {
  readonly #socket: RuntimeSocket
  #limit = LINE_LIMIT
  /** The last `show info`. */
  info: ProcessInfo | undefined

  constructor(socket: RuntimeSocket) {
    this.#socket = socket
  }

  /** A channel to that process only. */
  to(incarnation: string): Channel {
    return { run: (commands, signal) => this.#run(commands, signal, incarnation) }
  }

  /** Whoever answers. */
  async ask(
    commands: readonly string[],
    signal: AbortSignal,
  ): Promise<{ info: ProcessInfo; replies: string[] }> {
    const replies = await this.#run(commands, signal, undefined)
    const { info } = this
    if (info === undefined) throw malformed("a reply of 'show info'", '')
    return { info, replies }
  }

  /**
   * One changing line. Its reply is all that comes after `show info`, to the close: on 2.6 not every
   * reply to a change has its empty line.
   *
   * @throws {@link AnotherProcess} where another process than that executed it
   */
  async change(line: string, incarnation: string, signal: AbortSignal): Promise<string> {
    const text = await this.#socket.exchange(`show info;${line}`, signal)
    const { info: said, reply } = splitChange(text, line.split(';').length)
    const info = parseInfo(said)
    if (incarnationOf(info) !== incarnation) throw new AnotherProcess(info)
    return reply
  }

  async #run(
    commands: readonly string[],
    signal: AbortSignal,
    expected: string | undefined,
  ): Promise<string[]> {
    const lines = toLines('show info', commands, this.#limit)
    // Several lines are answered by several connections: all must be of one process.
    let process = expected
    const answers = await Promise.all(
      lines.map((line) => this.#socket.exchange(line.join(';'), signal)),
    )
    const replies: string[] = []
    for (const [index, text] of answers.entries()) {
      if (isLineTooLong(text)) return this.#again(commands, signal, expected, text)
      const [first, ...rest] = splitReplies(text, lines[index]?.length ?? 1)
      const info = parseInfo(first ?? '')
      process ??= incarnationOf(info)
      if (incarnationOf(info) !== process) throw new AnotherProcess(info)
      this.info = info
      replies.push(...rest)
    }
    return replies
  }

  #again(
    commands: readonly string[],
    signal: AbortSignal,
    expected: string | undefined,
    text: string,
  ): Promise<string[]> {
    this.#limit = Math.floor(this.#limit / 2)
    if (this.#limit < SHORTEST_LINE) throw malformed('room for a command line', text)
    return this.#run(commands, signal, expected)
  }
}

/** The socket of the master process: it passes commands on to any worker, old ones too. */
export class MasterSocket {
  readonly socket: RuntimeSocket

  constructor(socket: RuntimeSocket) {
    this.socket = socket
  }

  /** One command for the master itself. It never closes by itself: `quit` makes it. */
  async ask(command: string, signal: AbortSignal): Promise<string> {
    const text = await this.socket.exchange(`${command};quit`, signal)
    return splitReplies(text, 1)[0] ?? ''
  }

  /** A channel to that worker; `incarnation` once it is known. */
  to(
    pid: number,
    incarnation: () => string | undefined,
    seen: (info: ProcessInfo) => void,
  ): Channel {
    return {
      run: async (commands, signal) => {
        const replies: string[] = []
        for (const line of toLines('show info', commands, LINE_LIMIT)) {
          const [first, ...rest] = await this.#line(pid, line, signal)
          const info = parseInfo(first ?? '')
          const expected = incarnation()
          if (expected !== undefined && incarnationOf(info) !== expected) throw new WorkerGone()
          seen(info)
          replies.push(...rest)
        }
        return replies
      },
    }
  }

  /** `@!<pid>` alone sends the rest of the line to that worker; its `quit` ends the connection. */
  async #line(pid: number, commands: readonly string[], signal: AbortSignal): Promise<string[]> {
    const splitter = new ReplySplitter()
    let taken = 0
    let count = 0
    const text = await this.socket.exchange(
      [`@!${pid}`, ...commands, 'quit'].join(';'),
      signal,
      (all) => {
        // 3.x does not close after this one, whatever follows on the line.
        if (isWorkerGone(all)) return true
        count += splitter.push(all.slice(taken)).length
        taken = all.length
        return count >= commands.length
      },
    )
    if (isWorkerGone(text)) throw new WorkerGone()
    return splitReplies(text, commands.length)
  }
}

/** A connection kept since before a reload. */
export function keptChannel(kept: KeptConnection): Channel {
  return {
    async run(commands, signal) {
      const replies: string[] = []
      for (const command of commands) {
        try {
          replies.push(await kept.run(command, signal))
        } catch (error) {
          if (hasEnded(kept)) throw new WorkerGone()
          throw error
        }
      }
      return replies
    },
  }
}

function hasEnded(kept: KeptConnection): boolean {
  return kept.state === 'ended'
}

/** Whether a failed read leaves open what is there: every one of ours but a reply that can't be read. */
export function isSilence(error: unknown): boolean {
  return error instanceof DrainableError && error.code !== 'MALFORMED_REPLY'
}
