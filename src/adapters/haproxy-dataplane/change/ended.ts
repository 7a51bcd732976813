import type { ChangeResult } from '../../../provider/contract.js'

/** Takes the result of one change, with its place among the changes. */
export type HandUp = (index: number, result: ChangeResult) => void

/** The results of some changes so far, each handed up as it comes. */
export class Ended {
  readonly results: ChangeResult[] = []
  readonly #handUp: HandUp

  constructor(handUp: HandUp) {
    this.#handUp = handUp
  }

  add(index: number, result: ChangeResult): void {
    this.results[index] = result
    this.#handUp(index, result)
  }
}
