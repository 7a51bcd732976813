import type { Truth } from './truth.js'
import type { Random } from '../random.js'

/** What stands between the providers and the truth: it fails, freezes and loses answers. */
export class ControlPlane {
  readonly truth: Truth
  readonly random: Random
  /** From here on nothing goes wrong any more. */
  calm = false
  /** It answers nothing and does nothing before that. */
  frozenUntil = -Infinity
  /** Every look fails before that. */
  failingUntil = -Infinity
  /** Every look fails before that with an error that no other try mends: a certificate, a password. */
  failingForGoodUntil = -Infinity
  /** What happens to the next changes, in place of what the product's shares say. */
  readonly planned: ApplyFate[] = []

  constructor(truth: Truth, random: Random) {
    this.truth = truth
    this.random = random
  }

  get now(): number {
    return this.truth.clock.now()
  }

  latency(): number {
    return this.random.int(0, this.truth.product.latency)
  }

  /** How long a call has to wait beside its own latency. */
  frozenFor(): number {
    return Math.max(0, this.frozenUntil - this.now)
  }

  observeFails(): boolean {
    if (this.calm) return false
    return this.failingUntil > this.now || this.random.chance(this.truth.product.failing.observe)
  }

  failsForGood(): boolean {
    return !this.calm && this.failingForGoodUntil > this.now
  }

  fate(): ApplyFate {
    const planned = this.planned.shift()
    if (planned !== undefined) return planned
    if (this.calm || !this.random.chance(this.truth.product.failing.apply)) return 'done'
    return this.random.pick(FATES)
  }

  lateness(): number {
    return this.random.int(0, this.truth.product.capabilities.lateBound)
  }
}

/**
 * What becomes of a call that changes something. `not-done`, `answer-lost` and `late` look the same
 * to who asked; `half` is a batch whose first changes are handed up, then the connection is lost.
 */
export type ApplyFate =
  | 'done'
  | 'not-done'
  | 'answer-lost'
  | 'late'
  | 'hangs'
  | 'half'
  | 'said-unknown'
  | 'refused-for-now'
  | 'refused'

export const FATES: readonly ApplyFate[] = [
  'not-done',
  'answer-lost',
  'answer-lost',
  'late',
  'late',
  'hangs',
  'half',
  'said-unknown',
  'refused-for-now',
  'refused-for-now',
  'refused',
]
