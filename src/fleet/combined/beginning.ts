import type { Clock } from '../../provider/clock.js'
import { DrainableError } from '../../provider/error.js'

/** For how long those that have answered wait for a first look of the others, in milliseconds. */
const FIRST_LOOK = 1_000

/** What is known of a balancer: it is prepared, it is left out, or it can't be read yet. */
type Answer =
  | { readonly state: 'prepared' }
  | { readonly state: 'leftOut' | 'late'; readonly error: DrainableError }

/** One that has refused. */
interface Refused {
  readonly key: string
  readonly error: DrainableError
}

/**
 * Nothing is changed on any balancer before every one of them has been asked: what can be refused is refused before.
 * If one that can't be read is waited for, the others begin about a second after the call.
 */
export class Beginning {
  readonly #answers = new Map<string, Answer | undefined>()
  readonly #opened: Promise<void>
  readonly #cancel: () => void
  #open: () => void = () => undefined
  #failed: Refused | undefined
  #isOpen = false

  /** @param waits - whether those that answer begin without those that can't be read */
  constructor(keys: Iterable<string>, clock: Clock, waits: boolean) {
    for (const key of keys) this.#answers.set(key, undefined)
    this.#opened = new Promise((resolve) => (this.#open = resolve))
    this.#cancel = waits ? clock.setTimeout(() => this.#goOn(), FIRST_LOOK) : () => undefined
  }

  /** Whether those that have answered may begin. */
  get isOpen(): boolean {
    return this.#isOpen
  }

  /** The first that has refused. */
  get failed(): Refused | undefined {
    return this.#failed
  }

  /** Those that have nothing to do, and why. */
  get leftOut(): ReadonlyMap<string, DrainableError> {
    return this.#errors('leftOut')
  }

  /** Those that can't be read yet, and why. */
  get late(): ReadonlyMap<string, DrainableError> {
    return this.#errors('late')
  }

  /** One is prepared. Resolves when all may begin; never where one has refused. */
  prepared(key: string): Promise<void> {
    this.#answer(key, { state: 'prepared' })
    return this.#opened
  }

  /** One has nothing to do. */
  skip(key: string, error: DrainableError): void {
    this.#answer(key, { state: 'leftOut', error })
  }

  /** One can't be read: the others don't wait for it. */
  isLate(key: string, error: DrainableError): void {
    this.#answer(key, { state: 'late', error })
  }

  /** One has refused. @returns whether it is the first that has */
  fail(key: string, error: DrainableError): boolean {
    if (this.#failed !== undefined) return false
    this.#failed = { key, error }
    this.end()
    return true
  }

  /** Whether it is known what becomes of one: it was prepared, or left out. */
  isSettled(key: string): boolean {
    const { state } = this.#answers.get(key) ?? {}
    return state === 'prepared' || state === 'leftOut'
  }

  /** Nobody waits any more. */
  end(): void {
    this.#cancel()
  }

  #errors(wanted: 'leftOut' | 'late'): ReadonlyMap<string, DrainableError> {
    const errors = [...this.#answers].flatMap(([key, answer]): [string, DrainableError][] =>
      answer?.state === wanted ? [[key, answer.error]] : [],
    )
    return new Map(errors)
  }

  #goOn(): void {
    for (const [key, answer] of this.#answers)
      if (answer === undefined)
        this.isLate(
          key,
          new DrainableError('CALL_TIMEOUT', 'it has not answered its first look yet'),
        )
  }

  #answer(key: string, answer: Answer): void {
    this.#answers.set(key, answer)
    const isAwaited = [...this.#answers.values()].includes(undefined)
    if (this.#isOpen || this.#failed !== undefined || isAwaited) return
    this.#isOpen = true
    this.end()
    this.#open()
  }
}
