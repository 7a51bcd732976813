import type { DrainableError } from '../../../provider/error.js'

/** The caller's action on a drained member, whose signal fires when the hold is lost. */
export class Action {
  readonly #lost = new AbortController()
  #isRunning = false

  get running(): boolean {
    return this.#isRunning
  }

  /** Whether it was told that the hold is lost. */
  get isLost(): boolean {
    return this.#lost.signal.aborted
  }

  lose(error: DrainableError): void {
    this.#lost.abort(error)
  }

  async run<T>(action: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { signal } = this.#lost
    this.#isRunning = true
    try {
      signal.throwIfAborted() // lost between the outcome and now
      return await action(signal)
    } catch (error) {
      if (!signal.aborted) throw error
      // Many APIs wrap the reason of the signal they were given.
      const cause = error instanceof Error ? error.cause : undefined
      throw error === signal.reason || cause === signal.reason ? signal.reason : error
    } finally {
      this.#isRunning = false
    }
  }
}
