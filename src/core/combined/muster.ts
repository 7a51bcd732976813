import type { DrainableError } from '../../provider/error.js'

/**
 * Nothing is changed on any balancer before every one of them has been asked: what can be refused is
 * refused before.
 */
export class Muster {
  readonly #awaited: Set<string>
  readonly #opened: Promise<void>
  #open: () => void = () => undefined
  #failed: { readonly key: string; readonly error: DrainableError } | undefined
  readonly #onFailure: () => void
  /** Those an address hits nothing of, and what they said. */
  readonly skipped = new Map<string, DrainableError>()
  /** Those that can't be read yet, and why. */
  readonly late = new Map<string, DrainableError>()
  readonly #arrived = new Set<string>()
  #isOpen = false

  /** @param onFailure - one has refused, or all were skipped: none is to begin */
  constructor(keys: Iterable<string>, onFailure: () => void) {
    this.#awaited = new Set(keys)
    this.#onFailure = onFailure
    this.#opened = new Promise((resolve) => (this.#open = resolve))
  }

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
    if (this.#isOpen || this.#failed !== undefined) return
    this.#failed = { key, error }
    this.#onFailure()
  }

  #check(): void {
    if (this.#isOpen || this.#failed !== undefined || this.#awaited.size > 0) return
    this.#isOpen = true
    this.#open()
  }
}
