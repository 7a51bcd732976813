import type { BalancerProcess } from './balancer-process.js'
import type { Random } from '../random.js'
import type { Truth } from './truth.js'

/** Clients of the hidden balancer: some take any member, some stay with one. */
export class Traffic {
  readonly #truth: Truth
  readonly #random: Random
  readonly #pace: number
  readonly #length: number
  #stopped = false

  constructor(truth: Truth, random: Random) {
    this.#truth = truth
    this.#random = random
    this.#pace = random.pick([80, 200, 500])
    this.#length = random.pick([30, 200, 600])
  }

  start(): void {
    for (const pool of this.#truth.pools.keys()) this.#stream(pool)
    for (const key of this.#truth.members.keys())
      if (this.#random.chance(0.4)) this.#persistent(key)
  }

  stop(): void {
    this.#stopped = true
  }

  #later(fn: () => void, about: number): void {
    const wait = Math.max(1, Math.round(about * (0.2 + 1.6 * this.#random.next())))
    this.#truth.clock.setTimeout(fn, wait)
  }

  /** Requests that any serving member may get. */
  #stream(pool: string): void {
    if (this.#stopped) return
    this.#request(this.#random.pick(this.#truth.current()), pool)
    this.#later(() => this.#stream(pool), this.#pace)
  }

  #request(process: BalancerProcess, pool: string): void {
    const admitted = this.#truth
      .inPool(pool)
      .filter(({ key }) => this.#truth.admits(process, key, false))
    if (admitted.length > 0) this.#work(process, this.#random.pick(admitted).key)
  }

  #work(process: BalancerProcess, key: string): void {
    const random = this.#random
    const long = random.chance(0.05) ? 8 : 1
    const length = Math.max(1, Math.round(this.#length * long * (0.2 + 1.6 * random.next())))
    const { blind } = this.#truth.product.capabilities
    if (blind > 0 && random.chance(0.1)) {
      this.#truth.figures.add('world: hidden work')
      const hidden = Math.round(blind * (0.3 + 0.65 * random.next()))
      this.#truth.begin(process, key, 'hidden', hidden, length)
    } else if (random.chance(0.08)) {
      this.#truth.begin(process, key, 'queued', random.int(1, 400), length)
    } else this.#truth.begin(process, key, 'active', length)
  }

  /** One that comes back to its member under drain too, through the process it is connected to. */
  #persistent(key: string): void {
    const { pool } = this.#truth.member(key).ref
    let process = this.#random.pick(this.#truth.current())
    let visitsLeft = Infinity
    const every = this.#random.pick([300, 900, 2_500])
    const leave = (): void => {
      if (process.alive) process.attached -= 1
    }
    process.attached += 1
    const visit = (): void => {
      if (this.#stopped) {
        leave()
        this.#truth.endEmpty()
        return
      }
      if (process.role === 'old' && visitsLeft === Infinity) visitsLeft = this.#random.int(0, 3)
      if (!process.alive || visitsLeft <= 0) {
        leave()
        this.#truth.endEmpty()
        process = this.#random.pick(this.#truth.current())
        process.attached += 1
        visitsLeft = Infinity
      }
      visitsLeft -= 1
      if (this.#truth.admits(process, key, true)) this.#work(process, key)
      else this.#request(process, pool)
      this.#later(visit, every)
    }
    this.#later(visit, every)
  }
}
