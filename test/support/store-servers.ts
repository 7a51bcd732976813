/** Redis and NATS as a test needs them: on a free port of loopback, in a folder of their own, ended with it. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createConnection } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Kvm } from '@nats-io/kv'
import { connect } from '@nats-io/transport-node'
import type { Engine } from './engines.js'
import { freePort, until } from './haproxy.js'

/** A server that keeps leases. */
export class StoreServer implements AsyncDisposable {
  readonly port: number
  readonly #dir: string
  readonly #start: () => ChildProcess
  #child: ChildProcess

  private constructor(port: number, dir: string, start: () => ChildProcess) {
    this.port = port
    this.#dir = dir
    this.#start = start
    this.#child = start()
  }

  static redis(engine: Engine): Promise<StoreServer> {
    return StoreServer.#open(engine, (port, dir) => [
      ...['--port', String(port), '--bind', '127.0.0.1', '--dir', dir],
      ...['--save', '', '--appendonly', 'no'],
    ])
  }

  /**
   * With JetStream, which its buckets need, and the bucket `leases`: of several clients that create it in one moment
   * the server refuses some.
   */
  static async nats(engine: Engine): Promise<StoreServer> {
    const server = await StoreServer.#open(engine, (port, dir) => [
      ...['-a', '127.0.0.1', '-p', String(port), '-js', '-sd', dir],
    ])
    const connection = await connect({ servers: `127.0.0.1:${server.port}` })
    await new Kvm(connection).create('leases')
    await connection.close()
    return server
  }

  static async #open(
    engine: Engine,
    args: (port: number, dir: string) => string[],
  ): Promise<StoreServer> {
    const port = await freePort()
    const dir = mkdtempSync(join(tmpdir(), 'drainable-'))
    const start = (): ChildProcess => spawn(engine.path, args(port, dir), { stdio: 'ignore' })
    const server = new StoreServer(port, dir, start)
    await server.#up()
    return server
  }

  async #up(): Promise<void> {
    const open = (): Promise<boolean> =>
      new Promise((resolve) => {
        const socket = createConnection({ port: this.port, host: '127.0.0.1' })
        socket.once('error', () => resolve(false))
        socket.once('connect', () => {
          socket.destroy()
          resolve(true)
        })
      })
    await until(open, 'the server listens', 20_000)
  }

  /** Stops it in its tracks, or lets it go on. */
  signal(name: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child.kill(name)
  }

  /** Ends it at once. */
  kill(): Promise<void> {
    return this.#end()
  }

  /** Ends it at once, and starts it again with what it had written down. */
  async restart(): Promise<void> {
    await this.#end()
    this.#child = this.#start()
    await this.#up()
  }

  async #end(): Promise<void> {
    const child = this.#child
    if (child.exitCode !== null || child.signalCode !== null) return
    const closed = once(child, 'close')
    child.kill('SIGKILL')
    await closed
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end()
    rmSync(this.#dir, { recursive: true, force: true })
  }
}
