import type { PresentReading } from '../../provider/contract.js'
import type { PlanOptions } from './plan.js'
import type { Wish } from './wish.js'

/** Who goes on taking new work in one pool. */
export class ReadyFloor {
  readonly #least: number
  readonly #counted: Set<PresentReading>

  constructor(
    readings: readonly PresentReading[],
    wishes: readonly Wish[],
    options: PlanOptions,
    empty: boolean,
  ) {
    this.#least = options.keepReady ?? (empty && options.allowEmpty === true ? 0 : 1)
    const gone = new Set(wishes.filter(({ state }) => state === 'gone').map((w) => w.reading))
    this.#counted = new Set(readings.filter((one) => takesWork(one) && !gone.has(one)))
  }

  /** Whether the member can be held: if so, it does not count any more. */
  take(reading: PresentReading): boolean {
    if (!takesWork(reading)) return true
    const left = this.#counted.size - (this.#counted.has(reading) ? 1 : 0)
    if (left < this.#least) return false
    this.#counted.delete(reading)
    return true
  }

  get text(): string {
    return `keepReady is ${this.#least} and ${this.#counted.size} would serve in this pool`
  }
}

function takesWork({ serves, health, weight }: PresentReading): boolean {
  return serves && health !== 'down' && weight !== 0
}
