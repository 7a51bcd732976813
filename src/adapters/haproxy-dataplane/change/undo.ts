/**
 * What takes back the writes of one change, should it be refused in the middle: first what closes
 * the server, in reverse order, then, once its state is back, what opens it.
 */
export class Undo {
  readonly #closing: (() => Promise<unknown>)[] = []
  readonly #opening: (() => Promise<unknown>)[] = []

  get isEmpty(): boolean {
    return this.#closing.length + this.#opening.length === 0
  }

  /** Before the state is put back. */
  first(step: () => Promise<unknown>): void {
    this.#closing.unshift(step)
  }

  /** After the state is back. */
  last(step: () => Promise<unknown>): void {
    this.#opening.push(step)
  }

  async close(): Promise<void> {
    for (const step of this.#closing) await step()
  }

  async open(): Promise<void> {
    for (const step of this.#opening) await step()
  }
}
