import { DrainableError } from '../../provider/error.js'
import type { DrainReport } from '../../provider/report.js'
import type { Ending } from './ending.js'
import type { Looking } from './looking.js'

/** The caller's action while the drain is held: its signal fires when the hold is lost. */
export class Action {
  readonly #looking: Looking
  readonly #ending: Ending
  readonly #stop = new AbortController()

  constructor(looking: Looking, ending: Ending) {
    this.#looking = looking
    this.#ending = ending
  }

  /** Runs the action, and looks often meanwhile. */
  async run<T>(action: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { signal } = this.#stop
    this.#looking.acting = true
    this.#looking.soon()
    try {
      signal.throwIfAborted() // lost between the outcome and now
      return await action(signal)
    } catch (error) {
      if (!signal.aborted) throw error
      // Many an API wraps the reason of the signal it was given.
      const cause = error instanceof Error ? error.cause : undefined
      throw error === signal.reason || cause === signal.reason ? signal.reason : error
    } finally {
      this.#looking.acting = false
    }
  }

  /** The hold is lost. */
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

  /** How it goes; in a run that is broken, how it ended. */
  #report(): DrainReport | undefined {
    try {
      return this.#ending.report()
    } catch {
      return this.#ending.ended
    }
  }
}

/** Why an idle that was said does not hold any more in a run that something threw in. */
export function notKeptUp(cause: DrainableError): DrainableError {
  const words = `the hold could not be kept: ${cause.message}`
  return new DrainableError('IDLE_LOST', words, { cause })
}
