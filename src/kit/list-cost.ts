/** So many are asked for one by one for as long as it is not known what their list costs. */
const FEW = 16
/** What a request costs beside its bytes, at least, in milliseconds: a management service works for it too. */
const REQUEST = 20
/** As many bytes cost as much as one millisecond. */
const BYTES = 1_000

/** What a client has spent so far. */
export interface Spent {
  readonly requests: number
  readonly ms: number
  readonly bytes: number
}

/**
 * Decides whether one list of all objects costs less than an answer for each that is wanted, by what the last list took.
 * A device can have thousands of objects, of which seven are looked at.
 */
export class ListCost {
  #last: { readonly price: number; readonly bytesEach: number } | undefined

  /**
   * Reads a list, and remembers what it took.
   *
   * @param spent - what the client has spent so far
   * @param read - reads the list
   * @param count - how many objects it has
   */
  async of<T>(spent: () => Spent, read: () => Promise<T>, count: (list: T) => number): Promise<T> {
    const before = spent()
    const list = await read()
    const after = spent()
    const bytes = after.bytes - before.bytes
    const ms = Math.max(after.ms - before.ms, REQUEST * (after.requests - before.requests))
    this.#last = { price: ms + bytes / BYTES, bytesEach: bytes / Math.max(1, count(list)) }
    return list
  }

  /**
   * Whether the list is the cheaper way to so many objects.
   *
   * @param count - how many objects are wanted
   * @param ms - what one request takes
   */
  pays(count: number, ms: number): boolean {
    if (this.#last === undefined) return count > FEW
    const { price, bytesEach } = this.#last
    return price < count * (Math.max(REQUEST, ms) + bytesEach / BYTES)
  }
}
