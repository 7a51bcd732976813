import { subscribe, unsubscribe } from 'node:diagnostics_channel'

/** Requests that were answered, and the bytes of their bodies. */
export interface Traffic {
  readonly requests: number
  readonly bytes: number
}

interface Head {
  readonly response: { readonly headers: readonly Buffer[] }
}

/** Counts what undici sends and gets from here on. */
export class Meter implements Disposable {
  #requests = 0
  #bytes = 0
  readonly #count = (message: unknown): void => {
    const { headers } = (message as Head).response
    const words = headers.map((word) => word.toString().toLowerCase())
    const at = words.indexOf('content-length')
    this.#requests += 1
    this.#bytes += at < 0 ? 0 : Number(words[at + 1])
  }

  constructor() {
    subscribe('undici:request:headers', this.#count)
  }

  /** What came since the last time, and what `work` makes of it. */
  async of(work: () => Promise<unknown>): Promise<Traffic> {
    const [requests, bytes] = [this.#requests, this.#bytes]
    await work()
    return { requests: this.#requests - requests, bytes: this.#bytes - bytes }
  }

  [Symbol.dispose](): void {
    unsubscribe('undici:request:headers', this.#count)
  }
}
