import type { MemberRef } from '../../provider/contract.js'
import { refKey } from '../../provider/member-ref.js'

/** Whether the drain was in force for every member: once for each is enough. */
export class InForce {
  readonly promise: Promise<boolean>
  readonly #members = new Set<string>()
  #said = false
  #resolve: (inForce: boolean) => void = () => undefined

  constructor() {
    this.promise = new Promise((resolve) => (this.#resolve = resolve))
  }

  note(ref: MemberRef): void {
    if (!this.#said) this.#members.add(refKey(ref))
  }

  /** @param count - how many members the run has */
  check(count: number): void {
    if (this.#said || this.#members.size !== count) return
    this.#said = true
    this.#resolve(true)
  }

  /** The run is over: where it was not in force by now, it never was. */
  over(): void {
    this.#resolve(false)
  }
}
