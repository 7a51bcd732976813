import type { Duplex } from 'node:stream'
import { runCommand } from './cli.js'
import type { CliState } from './reply.js'
import { errorText, GARBAGE, splitCommands } from './cli-connection.js'
import type { LineHooks } from './cli-connection.js'
import type { ProcessGroup } from '../process/process-group.js'
import { showProc, VERSIONS } from '../show/show-info.js'
import type { Worker } from '../process/worker.js'

/** The process a command goes to; nothing names the master itself. */
type Target = 'master' | Worker

/**
 * One connection to the master's socket.
 *
 * It stays open after a command. A prefix (`@1`, `@!<pid>`) sends one command to that process; on its
 * own it switches for the rest of the connection.
 */
export class MasterConnection {
  readonly #stream: Duplex
  readonly #group: ProcessGroup
  readonly #hooks: LineHooks
  readonly #ended = new AbortController()
  readonly #states = new Map<Target, CliState>()
  #target: Target = 'master'
  #buffer = ''
  #running = Promise.resolve()
  #prompt = false

  constructor(stream: Duplex, group: ProcessGroup, hooks: LineHooks) {
    this.#stream = stream
    this.#group = group
    this.#hooks = hooks
    stream.setEncoding('utf8')
    stream.on('data', (chunk: string) => this.#take(chunk))
    stream.on('error', () => this.close())
    stream.on('close', () => this.close())
    stream.on('end', () => void this.#running.then(() => this.#stream.end()))
  }

  close(): void {
    this.#ended.abort()
    this.#stream.destroy()
  }

  #take(chunk: string): void {
    this.#buffer += chunk
    for (let at = this.#buffer.indexOf('\n'); at >= 0; at = this.#buffer.indexOf('\n')) {
      const line = this.#buffer.slice(0, at).replace(/\r$/, '')
      this.#buffer = this.#buffer.slice(at + 1)
      this.#running = this.#running.then(() => this.#runLine(line))
    }
  }

  async #runLine(line: string): Promise<void> {
    if (this.#ended.signal.aborted) return
    await this.#hooks.thawed()
    const failure = this.#hooks.onLine(line.trim())
    if (failure === undefined || failure.execute === true) {
      for (const command of splitCommands(line)) {
        const going = await this.#runOne(command.trim(), failure !== undefined)
        if (!going && failure === undefined) return
      }
    }
    if (failure?.how === 'garbage') this.#write(GARBAGE)
    else if (failure !== undefined && failure.how !== 'silent') this.close()
    else if (failure === undefined && this.#prompt) this.#write('master> ')
  }

  /** False when nothing more is to be run. */
  async #runOne(command: string, mute: boolean): Promise<boolean> {
    const [, prefix, rest = ''] = /^(@\S*)\s*(.*)$/.exec(command) ?? []
    const target = prefix === undefined ? this.#target : this.#find(prefix)
    if (target === undefined) {
      if (!mute) this.#write(`Can't find the target PID matching the prefix '${prefix ?? ''}'\n`)
      // What else was sent is lost: 2.6 closes, later versions wait for more, even after a quit.
      this.#buffer = ''
      if (this.#group.config.version === '2.6') this.#stream.end()
      return false
    }
    if (prefix !== undefined && rest === '') {
      this.#target = target
      return true
    }
    const text = prefix === undefined ? command : rest
    const instead = this.#hooks.onCommand(text)
    if (instead === undefined) return this.#runOn(target, text, mute)
    if (instead.execute === true) await this.#runOn(target, text, true)
    if (!mute) this.#write(`${errorText(instead)}\n`)
    return true
  }

  async #runOn(target: Target, text: string, mute: boolean): Promise<boolean> {
    if (text === 'quit') {
      this.#stream.end()
      return false
    }
    if (target === 'master') return this.#runHere(text, mute)
    const reply = await runCommand(target, this.#stateOf(target), text)
    if (!mute) this.#write(reply.text + (reply.bare ? '' : '\n'))
    return true
  }

  #find(prefix: string): Target | undefined {
    const name = prefix.slice(1)
    if (name === '' || name === 'master') return 'master'
    if (name.startsWith('!')) return this.#group.byPid(Number(name.slice(1)))
    return name === '1' ? this.#group.current : undefined
  }

  /** The few commands that the master itself knows. */
  #runHere(command: string, mute: boolean): boolean {
    const { version } = this.#group.config
    switch (command) {
      case 'show proc':
        this.#write(mute ? '' : `${showProc(this.#group)}\n`)
        return true
      case 'reload': {
        const before = this.#group.masterPid
        this.#group.reload()
        const { pid } = this.#group.current
        if (version !== '2.6' && !mute) {
          const begun =
            version === '3.0' ? `New worker (${pid}) forked` : `Initializing new worker (${pid})`
          const log = [`(${before}) : ${begun}`, `(${before}) : Loading success.`]
          this.#write(`Success=1\n--\n${log.map((text) => `[NOTICE]   ${text}\n`).join('')}\n`)
        }
        this.#stream.end()
        return false
      }
      case 'show version':
        this.#write(mute ? '' : `${VERSIONS[version].text}\n\n`)
        return true
      case 'show cli level':
        this.#write(mute ? '' : `${this.#group.config.level}\n\n`)
        return true
      case 'prompt':
        this.#prompt = !this.#prompt
        return true
      case '':
        this.#write('\n')
        return true
      default: {
        const [word = ''] = command.split(/\s+/)
        const named = version === '2.6' ? '' : `: '${word}'`
        const known = [
          '@!<pid>',
          '@<relative pid>',
          '@master',
          'reload',
          'show proc',
          'show version',
          'quit',
        ]
        const list = known.map((usage) => `  ${usage.padEnd(40)}: known to this fake\n`).join('')
        const head = `Unknown command${named}, but maybe one of the following ones is a better match:\n`
        this.#write(mute ? '' : `${head}${list}\n`)
        return true
      }
    }
  }

  #stateOf(worker: Worker): CliState {
    const known = this.#states.get(worker)
    if (known) return known
    const state: CliState = {
      level: this.#group.config.level,
      severity: 'none',
      ended: this.#ended.signal,
      viaMaster: true,
    }
    this.#states.set(worker, state)
    return state
  }

  #write(text: string): void {
    if (text !== '' && !this.#stream.destroyed) this.#stream.write(text)
  }
}
