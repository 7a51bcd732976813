import { fork, type ChildProcess } from 'node:child_process'
import type { Mutant } from './mutants.ts'
import type { Answer, Task } from './worker.ts'

/** All tests once, each by itself. */
const COVERAGE = 300_000

/** Runs mutants in a few processes, one after the other in each. */
export class Pool {
  readonly #worker: string
  readonly #bundle: string
  readonly #jobs: number
  readonly #endless: number

  /** @param endless - how long a mutant may take, in milliseconds: one that makes a loop endless is killed by that */
  constructor(worker: string, bundle: string, jobs: number, endless: number) {
    this.#worker = worker
    this.#bundle = bundle
    this.#jobs = jobs
    this.#endless = endless
  }

  /**
   * @param killerOf - the test that noticed a mutant the last time: it is tried first
   * @returns the test that has noticed each mutant; null where none has
   */
  async run(
    mutants: readonly Mutant[],
    killerOf: (mutant: Mutant) => string | null,
    progress: (done: number) => void,
  ): Promise<ReadonlyMap<Mutant, string | null>> {
    const testsOf = await this.#coverage()
    const queue = [...mutants]
    const killers = new Map<Mutant, string | null>(mutants.map((mutant) => [mutant, null]))
    let done = 0
    const work = async (): Promise<void> => {
      let child = this.#start()
      for (let mutant = queue.shift(); mutant !== undefined; mutant = queue.shift()) {
        const tests = testsOf(mutant.id)
        const task = { mutant: mutant.id, tests, first: killerOf(mutant) }
        const answer =
          tests?.length === 0 ? { failed: null } : await ask(child, task, this.#endless)
        if (answer === null) {
          child.kill('SIGKILL')
          child = this.#start()
        }
        killers.set(mutant, answer === null ? 'a loop that never ends' : answer.failed)
        done += 1
        progress(done)
      }
      child.kill()
    }
    await Promise.all(Array.from({ length: this.#jobs }, work))
    return killers
  }

  /** Which tests come to a mutant; null: it is asked before any test runs, so all of them may. */
  async #coverage(): Promise<(mutant: number) => readonly string[] | null> {
    const child = this.#start()
    const answer = await ask(child, { mutant: null, tests: null, first: null }, COVERAGE)
    child.kill()
    if (answer?.coverage === undefined)
      throw new Error(`the tests fail without any mutant: ${answer?.failed ?? 'no answer'}`)
    const { tests, before } = answer.coverage
    const always = new Set(before)
    const found = new Map<number, string[]>()
    for (const [name, hits] of Object.entries(tests))
      for (const id of hits) found.set(id, [...(found.get(id) ?? []), name])
    return (mutant) => (always.has(mutant) ? null : (found.get(mutant) ?? []))
  }

  #start(): ChildProcess {
    return fork(this.#worker, [this.#bundle], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  }
}

/** Null where no answer comes. */
function ask(child: ChildProcess, task: Task, limit: number): Promise<Answer | null> {
  return new Promise((resolve) => {
    const end = (answer: Answer | null): void => {
      clearTimeout(timer)
      child.off('message', onMessage)
      child.off('exit', onExit)
      resolve(answer)
    }
    const onMessage = (answer: Answer): void => end(answer)
    const onExit = (): void => end(null)
    const timer = setTimeout(end, limit, null)
    child.on('message', onMessage)
    child.on('exit', onExit)
    child.send(task)
  })
}
