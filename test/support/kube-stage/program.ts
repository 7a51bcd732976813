/** A program of the examples as a user runs it; what it says is kept. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../../', import.meta.url))

/** One line of a program. */
export interface Said {
  readonly event: string
  readonly [key: string]: unknown
}

export class Program implements AsyncDisposable {
  /** Oldest first. */
  readonly said: Said[] = []
  readonly #child: ChildProcess

  constructor(path: string, env: Readonly<Record<string, string | undefined>>) {
    const args = ['--import', `${root}scripts/source.mjs`, `${root}${path}`]
    const child = spawn(process.execPath, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: process.env['PATH'], ...env },
    })
    const keep = (line: string): void => void this.said.push(toSaid(line))
    createInterface(child.stdout).on('line', keep)
    createInterface(child.stderr).on('line', keep)
    this.#child = child
  }

  /** The newest line of that event. */
  last(event: string): Said | undefined {
    return this.said.findLast((one) => one.event === event)
  }

  /** Its status, once it has ended by itself. */
  async ended(): Promise<number | null> {
    const { exitCode } = this.#child
    if (exitCode !== null || this.#child.signalCode !== null) return exitCode
    const [status] = (await once(this.#child, 'exit')) as [number | null]
    return status
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  /** @returns its status */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    const ended = this.ended()
    this.#child.kill(signal)
    return ended
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop('SIGKILL')
  }
}

function toSaid(line: string): Said {
  try {
    return JSON.parse(line) as Said
  } catch {
    return { event: 'raw', line }
  }
}
