import type { MemberRef } from '../../../provider/contract.js'
import { refKey } from '../../../provider/member-ref.js'

/** Tracks whether the drain has been in force for every member, once for each. */
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

  /** Called when the run is over: a drain not in force by now never was. */
  over(): void {
    this.#resolve(false)
  }
}
