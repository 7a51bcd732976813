/** So many are asked for one by one for as long as it is not known what their list costs. */
const FEW = 16
/** What a request costs beside its bytes, at least, in milliseconds: a management service works for it too. */
const REQUEST = 20
/** As many bytes cost as much as one millisecond. */
const BYTES = 1_000

/** Of how many requests the quickest tells what one takes. */
const LATELY = 8

/** What the requests of one client take. */
export class Spending {
  /** Milliseconds of the last one. */
  last = 0
  #requests = 0
  #ms = 0
  #bytes = 0
  #lately: readonly number[] = []

  note(ms: number, bytes: number): void {
    this.last = ms
    this.#lately = [...this.#lately.slice(1 - LATELY), ms]
    this.#requests += 1
    this.#ms += ms
    this.#bytes += bytes
  }

  /** The least that one of the last few took, in milliseconds. */
  get least(): number {
    return this.#lately.length === 0 ? 0 : Math.min(...this.#lately)
  }

  /** What everything up to now took, as time and bytes in milliseconds. */
  get price(): number {
    return Math.max(this.#ms, REQUEST * this.#requests) + this.#bytes / BYTES
  }

  get bytes(): number {
    return this.#bytes
  }
}

/**
 * Decides whether one list of all objects costs less than an answer for each that is wanted, by what the last list took.
 * A device can have thousands of objects, of which seven are looked at.
 */
export class ListCost {
  readonly #spending: Spending
  #last: { readonly price: number; readonly bytesEach: number } | undefined

  /** @param spending - of the client that reads the list */
  constructor(spending: Spending) {
    this.#spending = spending
  }

  /**
   * Reads the list, and remembers what it took.
   *
   * @param read - reads the list
   * @param count - how many objects it has
   */
  async of<T>(read: () => Promise<T>, count: (list: T) => number): Promise<T> {
    const { price, bytes } = this.#spending
    const list = await read()
    const bytesEach = (this.#spending.bytes - bytes) / Math.max(1, count(list))
    this.#last = { price: this.#spending.price - price, bytesEach }
    return list
  }

  /** Whether the list is the cheaper way to so many objects. */
  pays(count: number): boolean {
    if (this.#last === undefined) return count > FEW
    const { price, bytesEach } = this.#last
    return price < count * (Math.max(REQUEST, this.#spending.least) + bytesEach / BYTES)
  }
}
