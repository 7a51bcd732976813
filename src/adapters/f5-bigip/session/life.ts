import type { Role } from '../codec/device.js'

/** Start of a role is told in steps this wide, so that two processes that look name it alike. */
const BUCKET = 600_000

/** What tells one life of a unit from the next: its role, how long it has had it, and counters that began anew. */
export class Life {
  #role: Role = 'unknown'
  /** Bounds of the moment the role began, by `performance.now()`. */
  #since: { readonly from: number; readonly to: number } | undefined
  #name = ''
  #count = 0
  #resets = 0

  /** Changes when counters may have been lost, or connections with the role. */
  get incarnation(): string {
    const resets = this.#resets === 0 ? '' : `, counters reset ${this.#resets} times`
    return `${this.#role} ${this.#name}${resets}`
  }

  /** How many were seen: a reboot or a change of role begins another. */
  get count(): number {
    return this.#count
  }

  /** A cumulative counter fell: the traffic processes began anew, or statistics were reset. */
  noteReset(): void {
    this.#resets += 1
  }

  /**
   * Notes role and its age. The whole seconds that it tells bound the start; bounds that no longer meet
   * mean another start.
   *
   * @param asked - before the device was asked, by `performance.now()`
   */
  note(role: Role, seconds: number | undefined, asked: number): void {
    const now = performance.now()
    const since =
      seconds === undefined
        ? undefined
        : { from: asked - (seconds + 1) * 1_000, to: now - seconds * 1_000 }
    const known = this.#since
    const moved =
      since !== undefined && known !== undefined && (since.from > known.to || since.to < known.from)
    if (this.#name === '' || role !== this.#role || moved) {
      this.#count += 1
      this.#role = role
      this.#since = since
      this.#name = nameOf(seconds, this.#count)
      return
    }
    if (since === undefined) return
    this.#since =
      known === undefined
        ? since
        : { from: Math.max(since.from, known.from), to: Math.min(since.to, known.to) }
  }
}

function nameOf(seconds: number | undefined, lives: number): string {
  const again = lives === 1 ? '' : ` #${lives}`
  if (seconds === undefined) return `since an unknown time${again}`
  const start = Math.floor((Date.now() - seconds * 1_000) / BUCKET) * BUCKET
  return `since about ${new Date(start).toISOString().slice(0, 16)}Z${again}`
}
