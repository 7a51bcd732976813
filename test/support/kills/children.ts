import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { lines, type Answer, type Orders, type Said } from './wire.js'

/** What is started ahead, while others work. */
const AHEAD = 3

/** Processes that wait for their orders: one bundle, compiled once, so that the start of each is short. */
export class Children implements AsyncDisposable {
  readonly #folder: string
  readonly #ready: ChildProcess[] = []

  private constructor(folder: string) {
    this.#folder = folder
  }

  static async open(): Promise<Children> {
    const folder = await mkdtemp(join(tmpdir(), 'drainable-kills-'))
    await build({
      entryPoints: [fileURLToPath(new URL('child.ts', import.meta.url))],
      outfile: join(folder, 'child.cjs'),
      bundle: true,
      format: 'cjs',
      platform: 'node',
      target: 'node22',
      logLevel: 'error',
    })
    return new Children(folder)
  }

  /** Where anything may be written that is gone at the end. */
  get folder(): string {
    return this.#folder
  }

  take(): Child {
    const process = this.#ready.shift() ?? this.#start()
    while (this.#ready.length < AHEAD) this.#ready.push(this.#start())
    return new Child(process)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const gone = this.#ready.map((process) => once(process, 'close'))
    for (const process of this.#ready) process.kill('SIGKILL')
    await Promise.all(gone)
    await rm(this.#folder, { recursive: true, force: true })
  }

  #start(): ChildProcess {
    return spawn(process.execPath, [join(this.#folder, 'child.cjs')], {
      stdio: ['pipe', 'pipe', 'pipe'],
      // Kept by a process that ends by itself: the first ones, which are not killed.
      env: { ...process.env, NODE_COMPILE_CACHE: join(this.#folder, 'compiled') },
    })
  }
}

/** One of them at work. */
export class Child {
  readonly #process: ChildProcess
  #failed = ''

  constructor(process: ChildProcess) {
    this.#process = process
  }

  /**
   * @param hear - gets all that it says, up to the last word
   * @returns whether it was killed
   * @throws where it ended otherwise, but not well
   */
  async run(
    orders: Orders,
    hear: (said: Said, answer: (answer: Answer) => void) => void,
  ): Promise<boolean> {
    const { stdin, stdout, stderr } = this.#process
    const write = (line: unknown): void => {
      if (stdin?.writable === true) stdin.write(`${JSON.stringify(line)}\n`)
    }
    stdin?.on('error', () => undefined) // it is dead
    stderr?.setEncoding('utf8').on('data', (chunk: string) => (this.#failed += chunk))
    stdout?.setEncoding('utf8').on(
      'data',
      lines((line) => hear(JSON.parse(line) as Said, write)),
    )
    write(orders)
    // All that it has said was read by then.
    const [status, signal] = (await once(this.#process, 'close')) as [number | null, string | null]
    if (signal === 'SIGKILL') return true
    if (status !== 0) throw new Error(`the child failed: ${this.#failed}`)
    return false
  }
}
