import type { Clock } from '../../provider/clock.js'
import { DrainableError } from '../../provider/error.js'

/** For how long those that have answered wait for a first look of the others, in milliseconds. */
const FIRST_LOOK = 1_000

/** Whose answer counts, and what follows from it. */
export interface BeginningOptions {
  readonly clock: Clock
  /** Whether those that answer begin without those that can't be read. */
  readonly waits: boolean
  /** One has refused before any began: none is to begin. */
  readonly refused: () => void
  /** One has refused after others began. */
  readonly refusedLate: () => void
}

/**
 * Nothing is changed on any balancer before every one of them has been asked: what can be refused is refused before.
 * If one that can't be read is waited for, the others begin about a second after the call.
 */
export class Beginning {
  readonly #options: BeginningOptions
  readonly #awaited: Set<string>
  readonly #opened: Promise<void>
  readonly #cancel: () => void
  #open: () => void = () => undefined
  #failed: { readonly key: string; readonly error: DrainableError } | undefined
  /** Those an address hits nothing of, and what they said. */
  readonly skipped = new Map<string, DrainableError>()
  /** Those that can't be read yet, and why. */
  readonly late = new Map<string, DrainableError>()
  readonly #arrived = new Set<string>()
  #isOpen = false

  constructor(keys: Iterable<string>, options: BeginningOptions) {
    this.#awaited = new Set(keys)
    this.#options = options
    this.#opened = new Promise((resolve) => (this.#open = resolve))
    const { clock, waits } = options
    this.#cancel = waits ? clock.setTimeout(() => this.#goOn(), FIRST_LOOK) : () => undefined
  }

  /** Whether those that have answered may begin. */
  get isOpen(): boolean {
    return this.#isOpen
  }

  get failed(): { readonly key: string; readonly error: DrainableError } | undefined {
    return this.#failed
  }

  /** One is prepared. Resolves when all may begin; never where one has refused. */
  arrive(key: string): Promise<void> {
    this.#arrived.add(key)
    this.late.delete(key)
    this.#awaited.delete(key)
    this.#check()
    return this.#opened
  }

  /** Whether it is known what becomes of one: it was prepared, or left out. */
  isSettled(key: string): boolean {
    return this.#arrived.has(key) || this.skipped.has(key)
  }

  /** One has nothing to do. */
  skip(key: string, error: DrainableError): void {
    this.skipped.set(key, error)
    this.late.delete(key)
    this.#awaited.delete(key)
    this.#check()
  }

  /** One can't be read: the others don't wait for it. */
  isLate(key: string, error: DrainableError): void {
    this.late.set(key, error)
    this.#awaited.delete(key)
    this.#check()
  }

  fail(key: string, error: DrainableError): void {
    if (this.#failed !== undefined) return
    this.#failed = { key, error }
    this.end()
    if (this.#isOpen) this.#options.refusedLate()
    else this.#options.refused()
  }

  /** Nobody waits any more. */
  end(): void {
    this.#cancel()
  }

  #goOn(): void {
    for (const key of [...this.#awaited])
      this.isLate(key, new DrainableError('CALL_TIMEOUT', 'it has not answered its first look yet'))
  }

  #check(): void {
    if (this.#isOpen || this.#failed !== undefined || this.#awaited.size > 0) return
    this.#isOpen = true
    this.end()
    this.#open()
  }
}
