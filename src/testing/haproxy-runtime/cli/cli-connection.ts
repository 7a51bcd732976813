import type { Duplex } from 'node:stream'
import { runCommand } from './cli.js'
import type { CliState, Reply } from './reply.js'
import type { FakeFailure, Series } from '../options.js'
import { formatPromptTime } from '../show/show-info.js'
import type { Worker } from '../process/worker.js'

/** By default 16 KB, of which 3.2 grants a line all and not one byte more. */
const BUFFER = 16_384
/** No real line is longer; what is, is not kept. */
const LIMIT = 4 * 1024 * 1024
const TOO_BIG =
  'The command line is too big for the buffer size. Please change tune.bufsize in the ' +
  'configuration to use a bigger command.\n'

/** What HAProxy never says. */
export const GARBAGE = '\u0000\u0001 not a reply at all \u00ff\n\n'

/** What a command is answered that was made to fail. */
export function errorText({ body = 'Permission denied' }: FakeFailure): string {
  return `${body}\n`
}

/** What a connection does with a line, beyond running it. */
export interface LineHooks {
  /** Called before a line runs; what is to go wrong with it. */
  readonly onLine: (line: string) => FakeFailure | undefined
  /** Called before a command of it runs; what is to go wrong with that alone. */
  readonly onCommand: (command: string) => FakeFailure | undefined
  /** Resolves when the process is not frozen. */
  readonly thawed: () => Promise<void>
  /** As by `stats timeout`. */
  readonly timeout: number
}

/**
 * One connection to a stats socket.
 *
 * A line in, its replies out, then the server closes: unless the line is `prompt`. Each reply ends
 * with an empty line, so a silent success is one single newline.
 */
export class CliConnection {
  readonly #stream: Duplex
  readonly #worker: Worker
  readonly #hooks: LineHooks
  readonly #version: Series
  readonly #state: CliState
  readonly #ended = new AbortController()
  #buffer = ''
  #mode: 'once' | 'prompt' | 'timed' | 'quiet' = 'once'
  #timer: NodeJS.Timeout | undefined
  #busy = false
  #closed = false

  constructor(stream: Duplex, worker: Worker, hooks: LineHooks) {
    this.#stream = stream
    this.#worker = worker
    this.#hooks = hooks
    this.#version = worker.config.version
    this.#state = {
      level: worker.config.level,
      severity: 'none',
      ended: this.#ended.signal,
      viaMaster: false,
    }
    stream.setEncoding('utf8')
    stream.on('data', (chunk: string) => this.#take(chunk))
    // A half-closed connection interrupts what waits, and gets the rest of its replies.
    stream.on('end', () => {
      this.#ended.abort()
      if (!this.#busy) this.close()
    })
    stream.on('error', () => this.close())
    stream.on('close', () => this.close())
    this.#rest()
    worker.onEnd(() => this.close())
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    clearTimeout(this.#timer)
    this.#ended.abort()
    this.#worker.commandLines.delete(this)
    this.#stream.destroy()
    this.#worker.release()
  }

  #take(chunk: string): void {
    this.#buffer = (this.#buffer + chunk).slice(0, LIMIT)
    if (!this.#busy) void this.#runLines()
  }

  async #runLines(): Promise<void> {
    this.#busy = true
    for (;;) {
      const at = this.#buffer.indexOf('\n')
      if (at < 0) break
      await this.#hooks.thawed()
      const line = this.#buffer.slice(0, at)
      this.#buffer = this.#buffer.slice(at + 1)
      const next = await this.#runLine(line)
      // 2.6 runs a second line of the same write before it closes; later versions drop it.
      const more = this.#version === '2.6' && this.#buffer.includes('\n')
      if (next === 'stop' || (this.#mode === 'once' && !more)) {
        if (next !== 'hang') this.#finish()
        return
      }
      if (next === 'hang') return
    }
    this.#busy = false
    this.#rest()
    if (this.#state.ended.aborted) this.close()
  }

  async #runLine(raw: string): Promise<'go' | 'stop' | 'hang'> {
    const line = raw.replace(/\r$/, '')
    const failure = this.#hooks.onLine(line.trim())
    this.#rest()
    const isCut = failure?.how === 'cut'
    if (failure && failure.execute !== true && !isCut) return this.#goWrong(failure)
    if (this.#version === '3.2' && Buffer.byteLength(raw) + 1 > BUFFER) {
      this.#write(TOO_BIG)
      return 'stop'
    }
    const before = this.#mode
    const commands = splitCommands(line)
    let whole = ''
    for (const [i, command] of commands.entries()) {
      const instead = this.#hooks.onCommand(command.trim())
      const run = instead === undefined || instead.execute === true
      const ran = run ? await this.#run(command) : undefined
      const reply = instead === undefined ? (ran ?? { text: '' }) : { text: errorText(instead) }
      const prompted = before !== 'once' || this.#mode !== 'once'
      if (isCut) whole += this.#framed(reply, i === commands.length - 1, prompted)
      if (failure) continue
      this.#write(this.#framed(reply, i === commands.length - 1, prompted))
      if (reply.close) return 'stop'
    }
    if (isCut) {
      this.#write(whole.slice(0, whole.length >> 1))
      return 'stop'
    }
    if (failure) return this.#goWrong(failure)
    if (raw.endsWith('\r') && this.#version === '3.2') this.#write('\n')
    return 'go'
  }

  async #run(command: string): Promise<Reply> {
    return this.#modeCommand(command) ?? (await runCommand(this.#worker, this.#state, command))
  }

  #goWrong({ how }: FakeFailure): 'stop' | 'hang' {
    if (how === 'garbage') {
      this.#write(GARBAGE)
      return 'stop'
    }
    if (how !== 'silent') this.close()
    return 'hang'
  }

  /** The commands that change how the connection itself goes on. */
  #modeCommand(command: string): Reply | undefined {
    const [word, ...options] = command.trim().split(/\s+/)
    if (word !== 'prompt') return undefined
    const later = this.#version === '3.2'
    if (later && options.includes('n')) {
      this.#mode = 'once'
      return { text: '' }
    }
    const timed = options.includes('timed') && this.#version !== '2.6'
    const quiet = later && options.includes('i')
    // A second `prompt` switches the prompt off again.
    if (options.length === 0 && this.#mode !== 'once') this.#mode = 'quiet'
    else this.#mode = quiet ? 'quiet' : timed ? 'timed' : 'prompt'
    // It is work of its own: an old process lives on for it.
    this.#worker.commandLines.add(this)
    return { text: '' }
  }

  #framed(reply: Reply, isLast: boolean, prompted: boolean): string {
    const end = reply.bare ? '' : '\n'
    if (reply.quiet || !prompted || this.#mode === 'quiet' || this.#mode === 'once')
      return reply.text + end
    // 3.2 prompts once a line, the others after each reply.
    if (this.#version === '3.2' && !isLast) return reply.text + end
    const time = this.#mode === 'timed' ? formatPromptTime(Date.now() - this.#worker.startedAt) : ''
    return `${reply.text}${end}${time}> `
  }

  #write(text: string): void {
    if (!this.#closed && text !== '') this.#stream.write(text)
  }

  #finish(): void {
    this.#busy = false
    clearTimeout(this.#timer)
    this.#stream.end(() => this.close())
  }

  /** Silent for too long: closed; a `wait` that lasts too long is interrupted, and says so first. */
  #rest(): void {
    clearTimeout(this.#timer)
    const late = (): void => (this.#busy ? this.#ended.abort() : this.close())
    this.#timer = setTimeout(late, this.#state.timeout ?? this.#hooks.timeout)
    this.#timer.unref()
  }
}

/** Cuts a line at its semicolons; `\;` is a plain one. */
export function splitCommands(line: string): readonly string[] {
  return line.split(/(?<!\\);/).map((part) => part.replaceAll('\\;', ';'))
}
