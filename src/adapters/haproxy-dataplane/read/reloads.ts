import type { ProcessInfo } from '../codec/replies.js'

/** For how long a reload counts as a recent one, in milliseconds. */
const RECENT = 60_000
/** From so many on the API is called busy. */
const BUSY = 2

/** Counts reloads: a busy API reloads HAProxy at almost every write, and a drain that waits for old processes then rarely ends. */
export class Reloads {
  #processes: string | undefined
  #version: string | undefined
  #seen: readonly { readonly at: number; readonly written: boolean }[] = []

  /**
   * Takes note of a look.
   *
   * @param version - of the configuration
   */
  note(infos: readonly ProcessInfo[], version: string | undefined, now: number): void {
    const processes = infos.map(({ node, pid }) => `${node}/${pid}`).join()
    if (this.#processes !== undefined && this.#processes !== processes) {
      const written = version !== undefined && version !== this.#version
      this.#seen = [...this.#seen.filter(({ at }) => now - at < RECENT), { at: now, written }]
      this.#version = version
    }
    this.#processes = processes
    this.#version ??= version
  }

  /** What a person should know who waits for a drain. */
  hint(now: number): string | undefined {
    const recent = this.#seen.filter(({ at }) => now - at < RECENT)
    if (recent.length < BUSY) return undefined
    const written = recent.filter((one) => one.written).length
    const whose =
      written === 0
        ? 'not by writes through this API'
        : `${written} of them after writes through this API`
    return `HAProxy was reloaded ${recent.length} times within the last minute, ${whose}: each one in mid-drain leaves a process that this API can't see, and oldWorkers: 'wait' waits for all of them; set hard-stop-after in HAProxy, or oldWorkers`
  }
}
