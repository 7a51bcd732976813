import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Count } from './backend-process.ts'

export type { Count } from './backend-process.ts'

/** A backend that can be asked, killed and replaced. */
export class Backend implements AsyncDisposable {
  readonly name: string
  readonly port: number
  #child: ChildProcess | undefined
  /** What earlier processes of this name had served. */
  #before = 0

  constructor(name: string, port: number) {
    this.name = name
    this.port = port
  }

  async start(): Promise<void> {
    const program = fileURLToPath(new URL('backend-process.ts', import.meta.url))
    this.#child = fork(program, [this.name, String(this.port)], { execArgv: [] })
    const first: unknown = (await once(this.#child, 'message'))[0]
    if (first !== 'listening') throw new Error(`${this.name} does not listen: ${String(first)}`)
  }

  async count(): Promise<Count> {
    const child = this.#child
    if (!child?.connected) return { active: 0, total: 0, lastEndedAt: 0 }
    const answer = once(child, 'message')
    child.send('count')
    return (await answer)[0] as Count
  }

  /** Asks for its count and kills it on the spot: without a goodbye. */
  async end(): Promise<Count> {
    const child = this.#child
    if (!child) throw new Error(`${this.name} is not running`)
    const count = await this.count()
    child.kill('SIGKILL')
    this.#child = undefined
    this.#before += count.total
    await once(child, 'exit')
    return count
  }

  /** Requests served by all processes that ended under this name. */
  get served(): number {
    return this.#before
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child) await this.end()
  }
}
