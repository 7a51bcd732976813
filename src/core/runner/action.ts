import { DrainableError } from '../../provider/error.js'
import type { DrainReport } from '../../provider/report.js'
import type { Ending } from './ending.js'
import type { Looking } from './looking.js'

/** Runs the caller's action while the drain is held; its signal fires when the hold is lost. */
export class Action {
  readonly #looking: Looking
  readonly #ending: Ending
  readonly #stop = new AbortController()

  constructor(looking: Looking, ending: Ending) {
    this.#looking = looking
    this.#ending = ending
  }

  /** Runs the action, with frequent looks meanwhile. */
  async run<T>(action: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { signal } = this.#stop
    this.#looking.acting = true
    this.#looking.soon()
    try {
      signal.throwIfAborted() // lost between the outcome and now
      return await action(signal)
    } catch (error) {
      if (!signal.aborted) throw error
      // Many APIs wrap the reason of the signal they were given.
      const cause = error instanceof Error ? error.cause : undefined
      throw error === signal.reason || cause === signal.reason ? signal.reason : error
    } finally {
      this.#looking.acting = false
    }
  }

  /** Called when the hold is lost. */
  lost(error: DrainableError): void {
    if (this.#stop.signal.aborted) return
    const { code, message, cause, ref } = error
    const report = this.#report()
    const data = {
      cause,
      ...(report === undefined ? {} : { report }),
      ...(ref === undefined ? {} : { ref }),
    }
    this.#stop.abort(new DrainableError(code, message, data))
  }

  /** The present report; for a broken run, the final one. */
  #report(): DrainReport | undefined {
    try {
      return this.#ending.report()
    } catch {
      return this.#ending.ended
    }
  }
}

/** The error for a held idle that ends because of an exception in the run. */
export function notKeptUp(cause: DrainableError): DrainableError {
  const words = `the hold could not be kept: ${cause.message}`
  return new DrainableError('IDLE_LOST', words, { cause })
}
