/** A real HAProxy under the control of a test: started from a configuration, reloaded, frozen, killed. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createConnection } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../scripts/ports.ts'
import type { Engine } from './engines.js'

export { freePort }

/** How HAProxy is run. `hidden`: under a master whose socket is not known. */
export type Mode = 'master' | 'hidden' | 'plain'

export interface HaproxyOptions {
  readonly engine: Engine
  /** All but the `global` section's sockets; `port(name)` gives a free port, the same for one name. */
  readonly config: (port: (name: string) => number, dir: string) => string
  readonly mode?: Mode
  /** More lines of the `global` section. */
  readonly global?: string
  /** Rights of the stats socket. */
  readonly level?: 'admin' | 'operator' | 'user'
}

/** Waits until `look` gives something else than undefined or false. */
export async function until<T>(
  look: () => T | undefined | false | Promise<T | undefined | false>,
  what: string,
  ms = 10_000,
): Promise<T> {
  const end = performance.now() + ms
  for (;;) {
    const found = await look()
    if (found !== undefined && found !== false) return found
    if (performance.now() > end) throw new Error(`${what}: not within ${ms} ms`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** One line to a CLI socket, read to the close. */
export async function cli(path: string, line: string): Promise<string> {
  const socket = createConnection({ path })
  socket.setEncoding('utf8')
  let text = ''
  socket.on('data', (chunk: string) => (text += chunk))
  socket.write(`${line}\n`)
  await once(socket, 'close')
  return text
}

export class Haproxy implements AsyncDisposable {
  readonly version: string
  readonly series: string
  readonly dir = mkdtempSync(join(tmpdir(), 'drainable-'))
  /** The stats socket. */
  readonly socket = join(this.dir, 'admin.sock')
  /** The master socket; there in mode `master`. */
  readonly master = join(this.dir, 'master.sock')
  readonly #options: HaproxyOptions
  readonly #ports = new Map<string, number>()
  readonly #children: ChildProcess[] = []
  #log = ''

  private constructor(options: HaproxyOptions) {
    this.#options = options
    this.version = options.engine.version
    this.series = options.engine.series
  }

  static async start(options: HaproxyOptions): Promise<Haproxy> {
    const haproxy = new Haproxy(options)
    await haproxy.#prepare()
    haproxy.#spawn([])
    try {
      await until(() => haproxy.pid().catch(() => undefined), 'HAProxy answers')
      await haproxy.#masterAnswers()
    } catch (cause) {
      await haproxy[Symbol.asyncDispose]()
      throw new Error(`HAProxy ${haproxy.version} did not start: ${haproxy.#log}`, { cause })
    }
    return haproxy
  }

  /**
   * A master that has only just started ignores signals, and can reset a connection to its socket (seen with 3.0.11).
   *
   * @returns the process that serves: a second signal of a reload before can replace it meanwhile
   */
  async #masterAnswers(): Promise<number> {
    let serving = await this.pid()
    if (this.#options.mode !== undefined && this.#options.mode !== 'master') return serving
    await until(async () => {
      serving = await this.pid().catch(() => serving)
      return (await this.processes()).includes(serving)
    }, 'the master answers')
    return serving
  }

  /** The port of the stats socket over TCP, where the `global` lines have one on port ${CLI}. */
  get cliPort(): number {
    return this.port('cli')
  }

  /** The port of that name in the configuration. */
  port(name: string): number {
    const port = this.#ports.get(name)
    if (port === undefined) throw new Error(`no port ${name} in the configuration`)
    return port
  }

  async #prepare(config = this.#options.config): Promise<void> {
    const wanted = new Set<string>()
    config((name) => {
      wanted.add(name)
      return this.#ports.get(name) ?? 1
    }, this.dir)
    for (const name of wanted) if (!this.#ports.has(name)) this.#ports.set(name, await freePort())
    if (!this.#ports.has('cli')) this.#ports.set('cli', await freePort())
    const { level = 'admin' } = this.#options
    const global = (this.#options.global ?? '').replaceAll('${CLI}', String(this.port('cli')))
    const text = `global
  server-state-base ${this.dir}
  stats socket ${this.socket} level ${level} expose-fd listeners
  nbthread 2
${global}
defaults
  mode http
  timeout connect 3s
  timeout client 60s
  timeout server 60s
  timeout tunnel 60s
  timeout queue 30s
  retries 3
${config((name) => this.port(name), this.dir)}
`
    writeFileSync(join(this.dir, 'haproxy.cfg'), text)
  }

  #spawn(more: readonly string[]): ChildProcess {
    const { engine, mode = 'master' } = this.#options
    const args = ['-f', join(this.dir, 'haproxy.cfg'), ...more]
    if (mode !== 'plain') args.push('-W')
    if (mode === 'master') args.push('-S', this.master)
    const child = spawn(engine.path, args, { stdio: ['ignore', 'pipe', 'pipe'] })
    const keep = (chunk: Buffer): void => {
      this.#log = (this.#log + chunk.toString()).slice(-4_000)
    }
    child.stdout.on('data', keep)
    child.stderr.on('data', keep)
    this.#children.push(child)
    return child
  }

  /** Pid of the process that serves the stats socket. */
  async pid(): Promise<number> {
    const pid = Number(/^Pid: (\d+)/m.exec(await this.cli('show info'))?.[1])
    return pid > 0 ? pid : Promise.reject(new Error('no pid'))
  }

  cli(line: string): Promise<string> {
    return cli(this.socket, line)
  }

  /** One cell of `show stat`. */
  async stat(pool: string, member: string, column: string): Promise<string> {
    const [header = '', ...rows] = (await this.cli('show stat -1 6 -1')).trim().split('\n')
    const columns = header.slice(2).split(',')
    const cells = rows.map((row) => row.split(',')).find(([p, s]) => p === pool && s === member)
    return cells?.[columns.indexOf(column)] ?? ''
  }

  /** A server's administrative mask, of `show servers state`. */
  async mask(pool: string, member: string): Promise<number> {
    const rows = (await this.cli(`show servers state ${pool}`)).split('\n')
    return Number(rows.map((row) => row.split(' ')).find((cells) => cells[3] === member)?.[6])
  }

  /** Replaces the process that serves, as an operator does, with another configuration if one is given. */
  async reload(config?: HaproxyOptions['config']): Promise<void> {
    if (config !== undefined) await this.#prepare(config)
    const main = this.#children.at(-1)
    const before = await this.#masterAnswers()
    if (this.#options.mode === 'plain') {
      this.#spawn(['-x', this.socket, '-sf', String(before)])
    }
    // A master without a socket is asked again, late enough not to reload twice.
    let askedAt = -Infinity
    const replaced = async (): Promise<boolean> => {
      if (this.#options.mode !== 'plain' && performance.now() - askedAt > 3_000) {
        askedAt = performance.now()
        main?.kill('SIGUSR2')
      }
      return (await this.pid().catch(() => before)) !== before
    }
    await until(replaced, 'the reload', 15_000)
  }

  /** Starts a second master that takes over from the first, which only finishes its work (`haproxy -W -sf`). */
  async takeOver(): Promise<void> {
    const before = await this.pid()
    const [master] = await until(async () => {
      const all = await this.processes()
      return all.includes(before) && all
    }, 'the master answers')
    this.#spawn(['-x', this.socket, '-sf', String(master)])
    await until(
      async () => (await this.pid().catch(() => before)) !== before,
      'the takeover',
      15_000,
    )
  }

  /** Tells the process to finish its work, and starts another beside it, as a supervisor may do. */
  async succeed(): Promise<void> {
    const before = await this.pid()
    this.#children.at(-1)!.kill('SIGUSR1')
    await until(
      () =>
        this.pid().then(
          () => false,
          () => true,
        ),
      'the socket is free',
    )
    this.#spawn([])
    await until(async () => (await this.pid().catch(() => before)) !== before, 'the next', 15_000)
  }

  /** Ends all processes at once, and starts a new master, as `systemctl restart` does. */
  async restart(): Promise<void> {
    const main = this.#children.at(-1)!
    const closed = once(main, 'close')
    main.kill('SIGTERM')
    await closed
    this.#spawn([])
    await until(() => this.pid().catch(() => undefined), 'a new process', 15_000)
  }

  /** Kills the process that serves: its master ends with it, and is started anew, as systemd does on failure. */
  async crash(signal: NodeJS.Signals): Promise<void> {
    const closed = once(this.#children.at(-1)!, 'close')
    await this.signal(signal)
    await closed
    this.#spawn([])
    await until(() => this.pid().catch(() => undefined), 'a new process', 15_000)
  }

  /** After the process that serves was killed: the master, which stays with `no-exit-on-failure`, starts another. */
  async revive(): Promise<void> {
    let told = -Infinity
    const isThere = async (): Promise<number | undefined> => {
      const pid = await this.pid().catch(() => undefined)
      // A master that is just taking in the end of its worker can lose the signal.
      if (pid === undefined && performance.now() > told + 3_000) {
        told = performance.now()
        const master = this.#children.at(-1)
        // One whose reload had not ended goes with its worker all the same.
        if (master?.exitCode === null && master.signalCode === null) master.kill('SIGUSR2')
        else this.#spawn([])
      }
      return pid
    }
    await until(isThere, 'a new process', 30_000)
  }

  /** What an operator does before a reload: the states go into the file of `server-state-file state`. */
  async keepState(): Promise<void> {
    writeFileSync(join(this.dir, 'state'), await this.cli('show servers state'))
  }

  /** The master and every worker that it has, old ones too. */
  async processes(): Promise<number[]> {
    const rows = (await cli(this.master, 'show proc;quit').catch(() => '')).matchAll(
      /^(\d+)\s+(?:master|worker)/gm,
    )
    return [...rows].map(([, pid]) => Number(pid))
  }

  /** Workers that a reload replaced, and that are still there. */
  async oldWorkers(): Promise<number[]> {
    const text = await cli(this.master, 'show proc;quit').catch(() => '')
    const [, old = ''] = text.split('# old workers')
    return [...old.matchAll(/^(\d+)\s+worker/gm)].map(([, pid]) => Number(pid))
  }

  /** To the process that serves. */
  async signal(name: NodeJS.Signals): Promise<number> {
    const pid = await this.pid()
    process.kill(pid, name)
    return pid
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#children) {
      if (child.exitCode !== null || child.signalCode !== null) continue
      const closed = once(child, 'close')
      child.kill('SIGTERM')
      const hard = setTimeout(() => child.kill('SIGKILL'), 2_000)
      await closed
      clearTimeout(hard)
    }
    rmSync(this.dir, { recursive: true, force: true })
  }
}
