import type { PresentReading } from '../../provider/contract.js'
import type { PlanOptions, Wish } from './plan.js'

/**
 * Who goes on taking new work in one pool.
 *
 * A balancer gives work to a fresh member before a check of it has passed (HAProxy counts it as up from its first
 * moment), and says `unknown` until then. Such a member takes the place of another such one, not of one that works.
 */
export class ReadyFloor {
  readonly #least: number
  /** How many take work, work as far as is known, and are not gone. */
  #good = 0
  /** How many take work before a check of them has passed, and are not gone. */
  #unproved = 0

  constructor(
    readings: readonly PresentReading[],
    wishes: readonly Wish[],
    options: PlanOptions,
    empty: boolean,
  ) {
    this.#least = options.keepReady ?? (empty && options.allowEmpty === true ? 0 : 1)
    for (const one of readings) this.#count(one, 1)
    for (const { state, reading } of wishes) if (state === 'gone') this.#count(reading, -1)
  }

  /**
   * Whether the member can be held: if so, it does not count any more. One that is gone never counted:
   * all that it takes is new work that fails, so it waits only where no other member could take that.
   */
  take({ reading, state }: Wish): boolean {
    if (!takesWork(reading)) return true
    const all = this.#good + this.#unproved
    if (state === 'gone') return all >= this.of({ state })
    const left = isUnproved(reading) ? all : this.#good
    if (left - 1 < this.#least) return false
    this.#count(reading, -1)
    return true
  }

  /** How many others must be left where this one is taken. */
  of({ state }: Pick<Wish, 'state'>): number {
    return state === 'gone' ? Math.min(1, this.#least) : this.#least
  }

  get text(): string {
    const more = this.#unproved === 0 ? '' : `, ${this.#unproved} more of which no check has passed`
    return `keepReady is ${this.#least} and ${this.#good} would serve in this pool${more}`
  }

  #count(reading: PresentReading, by: 1 | -1): void {
    if (!takesWork(reading)) return
    if (isUnproved(reading)) this.#unproved += by
    else this.#good += by
  }
}

function takesWork({ serves, health, weight }: PresentReading): boolean {
  return serves && health !== 'down' && weight !== 0
}

function isUnproved({ health }: PresentReading): boolean {
  return health === 'unknown'
}
