/** Longer than any name of a resource, a node or a cluster that people give; characters. */
const LONGEST = 4_096

/** How much is remembered for clients. */
export interface NameBounds {
  readonly count: number
  readonly characters: number
  /** What the names are of, in a refusal: `resource names on one stream`. */
  readonly of: string
}

/**
 * Counts the names that are remembered for a client, and refuses what no proxy needs: any client that reaches the port may
 * send new ones for as long as the process lives.
 */
export class NameLimit {
  readonly #bounds: NameBounds
  readonly #whole: NameLimit | undefined
  #count = 0
  #characters = 0

  /** @param whole - the limit of all clients together */
  constructor(bounds: NameBounds, whole?: NameLimit) {
    this.#bounds = bounds
    this.#whole = whole
  }

  /** @throws Error with the limit in words; then nothing was counted */
  take(name: string): void {
    const { count, characters, of } = this.#bounds
    checkName(name, `one of the ${of}`)
    if (this.#count >= count) throw new Error(`more than ${count} ${of}`)
    if (this.#characters + name.length > characters) {
      throw new Error(`more than ${characters} characters in ${of}`)
    }
    this.#whole?.take(name)
    this.#count += 1
    this.#characters += name.length
  }

  give(name: string): void {
    this.#release(1, name.length)
  }

  /** All that was taken here. */
  giveAll(): void {
    this.#release(this.#count, this.#characters)
  }

  #release(count: number, characters: number): void {
    this.#count -= count
    this.#characters -= characters
    if (this.#whole !== undefined) this.#whole.#release(count, characters)
  }
}

/** @throws Error for a text that no name is as long as */
export function checkName(name: string, what: string): void {
  if (name.length > LONGEST) throw new Error(`${what} is longer than ${LONGEST} characters`)
}
