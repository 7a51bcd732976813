import type { PresentReading } from '../../provider/contract.js'
import type { PlanOptions } from './plan.js'
import type { Wish } from './wish.js'

/** Who goes on taking new work in one pool. */
export class ReadyFloor {
  readonly #least: number
  /** How many take work and are not gone. */
  #counted: number

  constructor(
    readings: readonly PresentReading[],
    wishes: readonly Wish[],
    options: PlanOptions,
    empty: boolean,
  ) {
    this.#least = options.keepReady ?? (empty && options.allowEmpty === true ? 0 : 1)
    this.#counted = 0
    for (const one of readings) if (takesWork(one)) this.#counted++
    for (const { state, reading } of wishes)
      if (state === 'gone' && takesWork(reading)) this.#counted--
  }

  /**
   * Whether the member can be held: if so, it does not count any more. One that is gone never counted:
   * all that it takes is new work that fails, so it waits only where no other member could take that.
   */
  take({ reading, state }: Wish): boolean {
    if (!takesWork(reading)) return true
    if (state === 'gone') return this.#counted >= this.of({ state })
    if (this.#counted - 1 < this.#least) return false
    this.#counted--
    return true
  }

  /** How many others must be left where this one is taken. */
  of({ state }: Pick<Wish, 'state'>): number {
    return state === 'gone' ? Math.min(1, this.#least) : this.#least
  }

  get text(): string {
    return `keepReady is ${this.#least} and ${this.#counted} would serve in this pool`
  }
}

function takesWork({ serves, health, weight }: PresentReading): boolean {
  return serves && health !== 'down' && weight !== 0
}
