/** The lines that one command has caused so far. */
export class Lines {
  #lines: string[] = []
  /** After the end of a history everything is put away, and nothing of that is said. */
  quiet = false

  say(process: string, line: string): void {
    if (this.quiet) return
    const text = process === FIRST_PROCESS ? line : `${process}: ${line}`
    // A ticket that is written twice with nothing in between is one word to a reader.
    if (this.#lines.at(-1) === text && / ticket |^ticket /.test(text)) return
    this.#lines.push(text)
  }

  put(lines: readonly string[]): void {
    this.#lines.push(...lines)
  }

  take(): readonly string[] {
    const taken = this.#lines
    this.#lines = []
    return taken
  }
}

/** The process that a command without `name: ` belongs to. */
export const FIRST_PROCESS = 'one'
