/** A process beside the benchmark's own, so that what is measured shares no event loop with backends and clients. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

interface Call {
  readonly id: number
  readonly name: string
  readonly args: readonly unknown[]
}

interface Reply {
  readonly id: number
  readonly result?: unknown
  readonly error?: string
}

/** What a child can be asked for, by name. */
export type Calls = Readonly<Record<string, (...args: never[]) => unknown>>

type Result<F extends Calls[string]> = Promise<Awaited<ReturnType<F>>>

/** Milliseconds by the clock that all processes of a machine share. */
export function now(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

/** In the child: answers calls until the parent has gone. */
export function serve(calls: Calls): void {
  process.on('message', ({ id, name, args }: Call) => {
    const answer = async (): Promise<void> => {
      try {
        const result = await calls[name]?.(...(args as never[]))
        process.send?.({ id, result } satisfies Reply)
      } catch (error) {
        process.send?.({ id, error: String(error) } satisfies Reply)
      }
    }
    void answer()
  })
  process.on('disconnect', () => process.exit())
}

/** In the parent: one child, by the name of its file. */
export class Child<T extends Calls> implements AsyncDisposable {
  readonly #process: ChildProcess
  readonly #open = new Map<number, (reply: Reply) => void>()
  #calls = 0

  constructor(file: string) {
    this.#process = fork(fileURLToPath(new URL(file, import.meta.url)))
    this.#process.on('message', (reply: Reply) => this.#open.get(reply.id)?.(reply))
    this.#process.on('exit', () => {
      for (const answer of this.#open.values()) answer({ id: 0, error: `${file} has ended` })
    })
  }

  call<N extends keyof T & string>(name: N, ...args: Parameters<T[N]>): Result<T[N]> {
    const id = (this.#calls += 1)
    return new Promise((resolve, reject) => {
      this.#open.set(id, ({ result, error }) => {
        this.#open.delete(id)
        if (error === undefined) resolve(result as Awaited<ReturnType<T[N]>>)
        else reject(new Error(error))
      })
      this.#process.send({ id, name, args } satisfies Call)
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode !== null) return
    const exited = once(this.#process, 'exit')
    this.#process.disconnect()
    await exited
  }
}
