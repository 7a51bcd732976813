import { SHOW_INFO } from '../codec/commands.js'
import {
  incarnationOf,
  isLineTooLong,
  isUnknownCommand,
  malformed,
  parseInfo,
  type ProcessInfo,
  splitChange,
  splitReplies,
} from '../codec/replies.js'
import type { RuntimeSocket, Within } from './socket.js'

/** The answer of one process. */
export interface Answer {
  readonly info: ProcessInfo
  /** One reply for each command, in order. */
  readonly replies: readonly string[]
}

/** A channel for read-only commands to one process. */
export interface Channel {
  /**
   * @throws {@link AnotherProcess} if another process answered, {@link WorkerGone} if it is certainly gone
   */
  run(commands: readonly string[], ctx: Within): Promise<Answer>
}

/** Another process serves the socket now: after a reload, or a restart. */
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

/** The peer does not know `show info`: it is the master itself, or not HAProxy. */
export class NoWorker extends Error {
  override readonly name = 'NoWorker'
}

/** A line stays below HAProxy's `tune.bufsize` (16,384 by default); a smaller limit is found by trying. */
const LINE_LIMIT = 12_000
const SHORTEST_LINE = 500

/**
 * A longer answer has begun with something else, because the list of commands that can follow is shorter: to compare
 * each piece would copy all that came before.
 */
const UNKNOWN_WITHIN = 20_000

/** Whether it is the master that answers: it does not know `show info`, and does not close. */
function isNotKnown(text: string): boolean {
  return text.length < UNKNOWN_WITHIN && isUnknownCommand(text)
}

/** Joins commands into lines of at most `limit` characters, each beginning with {@link SHOW_INFO}. */
export function toLines(commands: readonly string[], limit = LINE_LIMIT): string[][] {
  const lines: string[][] = []
  const first = SHOW_INFO
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

/**
 * Puts together what was answered to the lines of one question, each line with `show info` first. Several lines use
 * several connections: all answers must come from one process.
 *
 * @param expected - its incarnation; undefined for any
 * @param another - makes the error if another process has answered
 */
export function together(
  lines: readonly (readonly string[])[],
  expected: string | undefined,
  another: (info: ProcessInfo) => Error,
): Answer {
  const answers = lines.map(([said = '', ...replies]) => ({ info: parseInfo(said), replies }))
  const [first] = answers
  if (first === undefined) throw malformed("a reply of 'show info'", '')
  const process = expected ?? incarnationOf(first.info)
  const other = answers.find(({ info }) => incarnationOf(info) !== process)
  if (other !== undefined) throw another(other.info)
  return { info: first.info, replies: answers.flatMap(({ replies }) => replies) }
}

/**
 * Sends commands to the process that serves the stats socket, and checks in the same connection that it is the
 * expected one.
 */
export class StatsChannel {
  readonly #socket: RuntimeSocket
  #limit = LINE_LIMIT

  constructor(socket: RuntimeSocket) {
    this.#socket = socket
  }

  /** Returns a channel to that process only. */
  to(incarnation: string): Channel {
    return { run: (commands, ctx) => this.#run(commands, ctx, incarnation) }
  }

  /**
   * Asks any process that answers.
   *
   * @throws {@link NoWorker}
   */
  ask(commands: readonly string[], ctx: Within): Promise<Answer> {
    return this.#run(commands, ctx, undefined)
  }

  /**
   * Sends one changing line. Its reply is everything after `show info`, to the close: on 2.6 not every reply to a
   * change ends with an empty line.
   *
   * @throws {@link AnotherProcess} if another process executed it
   */
  async change(line: string, incarnation: string, ctx: Within): Promise<string> {
    const text = await this.#socket.exchange(`${SHOW_INFO};${line}`, ctx)
    const { info: said, reply } = splitChange(text, line.split(';').length)
    const info = parseInfo(said)
    if (incarnationOf(info) !== incarnation) throw new AnotherProcess(info)
    return reply
  }

  async #run(
    commands: readonly string[],
    ctx: Within,
    expected: string | undefined,
  ): Promise<Answer> {
    const lines = toLines(commands, this.#limit)
    const texts = await Promise.all(
      lines.map((line) => this.#socket.exchange(line.join(';'), ctx, isNotKnown)),
    )
    const unknown = texts.find(isUnknownCommand)
    if (unknown !== undefined) throw new NoWorker(unknown.slice(0, 200))
    const tooLong = texts.find(isLineTooLong)
    if (tooLong !== undefined) return this.#again(commands, ctx, expected, tooLong)
    const said = texts.map((text, index) => splitReplies(text, lines[index]?.length ?? 1))
    return together(said, expected, (info) => new AnotherProcess(info))
  }

  #again(
    commands: readonly string[],
    ctx: Within,
    expected: string | undefined,
    text: string,
  ): Promise<Answer> {
    this.#limit = Math.floor(this.#limit / 2)
    if (this.#limit < SHORTEST_LINE) throw malformed('room for a command line', text)
    return this.#run(commands, ctx, expected)
  }
}
