import type { Owner } from './owner.js'

/** The call of this process that writes each ticket, by the ticket's id. */
export class Writers {
  readonly #writers = new Map<string, Owner>()

  of(ticket: string): Owner | undefined {
    return this.#writers.get(ticket)
  }

  /** The call writes this ticket from now on; one that did is over. */
  begin(ticket: string, call: Owner): void {
    const before = this.#writers.get(ticket)
    this.#writers.set(ticket, call)
    if (before !== undefined && before !== call) before.replaced()
  }

  end(ticket: string, call: Owner): void {
    if (this.#writers.get(ticket) === call) this.#writers.delete(ticket)
  }
}
