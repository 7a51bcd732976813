/** What to do to requests in place of answering them. */
export interface Failure {
  /** Matched against `GET /nitro/v1/stat/service?...`. Default: every request. */
  readonly match?: RegExp
  /**
   * - `status`: an answer with that status, and that errorcode where one is given
   * - `refuse`: no connection; where `match` or `times` is given, a connection cut before anything is read of it
   * - `silent`: taken and never answered
   * - `reset`: cut, the command not carried out
   * - `lost`: carried out, then cut before the answer
   * - `garbage`: HTML under 200
   * - `empty`: no bytes under 200, nothing carried out
   */
  readonly how: 'status' | 'refuse' | 'silent' | 'reset' | 'lost' | 'garbage' | 'empty'
  /** Default 503. */
  readonly status?: number
  readonly errorcode?: number
  readonly message?: string
  /** How many requests. Default: until it is lifted. */
  readonly times?: number
}

/** The failures in force. */
export class Faults {
  #active: { readonly what: Failure; left: number }[] = []

  /** @returns lifts it again */
  add(what: Failure): () => void {
    const entry = { what, left: what.times ?? Infinity }
    this.#active.push(entry)
    return () => {
      this.#active = this.#active.filter((one) => one !== entry)
    }
  }

  take(line: string): Failure | undefined {
    const entry = this.#active.find(({ what }) => what.match === undefined || what.match.test(line))
    if (!entry) return undefined
    entry.left -= 1
    if (entry.left <= 0) this.#active = this.#active.filter((one) => one !== entry)
    return entry.what
  }

  clear(): void {
    this.#active = []
  }
}
