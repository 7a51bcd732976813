import type { Clock, Drain, DrainableProvider, Reconciler } from 'drainable'
import type { FakeClock } from 'drainable/testing'

/** A call of the library that a history can name again. */
export interface Call {
  readonly handle?: Drain
  readonly loop?: Reconciler
  readonly controller: AbortController
  /** Says a line of this call. */
  readonly say: (line: string) => void
}

/** One process that uses the library: its clock, its provider objects, its calls. */
export class UserProcess {
  readonly name: string
  readonly clock: ProcessClock
  readonly providers = new Map<string, DrainableProvider>()
  readonly calls = new Map<string, Call>()
  /** Ends an action of `drain()` or the `act` of a roll that waits for the history. */
  readonly working: { readonly end: (error?: Error) => void }[] = []
  readonly #historyEnds = Promise.withResolvers<undefined>()
  alive = true

  constructor(name: string, clock: FakeClock) {
    this.name = name
    this.clock = new ProcessClock(clock)
  }

  /** From now on nothing of it happens, and no answer reaches it. */
  die(): void {
    this.alive = false
    this.clock.stop()
  }

  /** A dead process gets no answer before the history is over. */
  async untilHistoryEnds(): Promise<void> {
    if (!this.alive) await this.#historyEnds.promise
  }

  /** The history is over: all that still waits goes on, so that it can end. */
  letEnd(): void {
    this.#historyEnds.resolve(undefined)
    this.clock.goOn()
  }
}

/** The clock of one process: it stands still once that process is dead. */
class ProcessClock implements Clock {
  readonly #clock: FakeClock
  readonly #missed = new Set<() => void>()
  #stands = false

  constructor(clock: FakeClock) {
    this.#clock = clock
  }

  now(): number {
    return this.#clock.now()
  }

  wall(): number {
    return this.#clock.wall()
  }

  setTimeout(fn: () => void, ms: number): () => void {
    const fire = (): void => {
      if (this.#stands) this.#missed.add(fire)
      else fn()
    }
    const cancel = this.#clock.setTimeout(fire, ms)
    return () => {
      this.#missed.delete(fire)
      cancel()
    }
  }

  stop(): void {
    this.#stands = true
  }

  goOn(): void {
    this.#stands = false
    for (const fire of [...this.#missed]) fire()
    this.#missed.clear()
  }
}
