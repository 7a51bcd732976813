import type { UserProcess } from './user-process.js'

/** A promise of the library that has to settle. */
export interface Promised {
  readonly what: string
  readonly process: UserProcess
  by: number
  settled: boolean
}

/** Who is told of what comes late, or not at all. */
export interface Hearer {
  readonly now: number
  readonly truth: { tell(text: string): void }
  fault(rule: string, text: string): void
}

/** Everything the library has promised: each must settle, and in time. */
export class WaitingList {
  readonly #judge: Hearer
  readonly #list: Promised[] = []

  constructor(judge: Hearer) {
    this.#judge = judge
  }

  /** Calls one of the two when it settles, unless its process is dead by then. */
  expect<T>(
    what: string,
    process: UserProcess,
    within: number,
    promise: Promise<T>,
    onValue: (value: T) => void,
    onError?: (error: unknown) => void,
  ): Promised {
    const promised: Promised = { what, process, by: this.#judge.now + within, settled: false }
    this.#list.push(promised)
    const settle = (how: string, then: () => void): void => {
      promised.settled = true
      if (!process.alive) return
      this.#judge.truth.tell(`${what}: ${how}`)
      if (this.#judge.now > promised.by) {
        const late = Math.round(this.#judge.now - promised.by)
        this.#judge.fault('late end', `${what} took ${late} ms longer than its limits`)
      }
      then()
    }
    promise.then(
      (value) => settle('settled', () => onValue(value)),
      (error: unknown) => {
        if (onError === undefined)
          this.#judge.fault('rejection', `${what} rejected: ${words(error)}`)
        settle(`rejected (${words(error)})`, () => onError?.(error))
      },
    )
    return promised
  }

  /** What living processes still wait for. */
  open(): readonly Promised[] {
    return this.#list.filter(({ settled, process }) => !settled && process.alive)
  }
}

export function words(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const code = 'code' in error ? `${String(error.code)}: ` : ''
  return `${code}${error.message}`
}
