/** The command as a process of its own, from the sources. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Document } from './command.js'

const source = fileURLToPath(new URL('../../scripts/source.mjs', import.meta.url))
const main = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))

/** A user with tickets of an own, who types commands. */
export class User implements Disposable {
  readonly home = mkdtempSync(join(tmpdir(), 'drainable-user-'))

  /** Begins a command. Its output is there as it comes. */
  begin(...argv: readonly string[]): Typed {
    const args = ['--no-warnings', '--import', source, main, ...argv]
    const env = { ...process.env, HOME: this.home, XDG_STATE_HOME: this.home }
    return new Typed(spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'] }))
  }

  /** Runs a command to its end. */
  async type(...argv: readonly string[]): Promise<Ended> {
    await using typed = this.begin(...argv)
    return await typed.ended
  }

  /** Runs a command with `--json`. */
  async document(verb: string, ...more: readonly string[]): Promise<Document> {
    const { out, err } = await this.type(verb, '--json', ...more)
    if (out === '') throw new Error(`no document: ${err}`)
    return JSON.parse(out) as Document
  }

  [Symbol.dispose](): void {
    rmSync(this.home, { recursive: true, force: true })
  }
}

export interface Ended {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

/** A command that runs. */
export class Typed implements AsyncDisposable {
  readonly ended: Promise<Ended>
  readonly #child: ChildProcess
  out = ''
  err = ''

  constructor(child: ChildProcess) {
    this.#child = child
    child.stdout?.setEncoding('utf8').on('data', (text: string) => (this.out += text))
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.err += text))
    this.ended = once(child, 'close').then(([code]) => {
      return { code: code as number | null, out: this.out, err: this.err }
    })
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  /** Nobody reads its stdout any more, as after `| head -1`. */
  closeStdout(): void {
    this.#child.stdout?.destroy()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.ended
  }
}
