import { Turnstile } from '../../../kit/turnstile.js'
import type { CallContext } from '../../../provider/contract.js'
import { pause } from '../../../provider/clock.js'

/** How many times its own length the pause after a poll lasts. */
const SHARE = 4
const LONGEST_PAUSE = 4_000

/**
 * Keeps polls apart. Each one makes the API dump and decode the statistics of the whole process
 * (about 0.2 ms for each server it has) behind the lock that the writes of all clients need. So polls
 * never overlap, and the pause after one is four times as long as it took.
 */
export class PollGate {
  readonly #turn = new Turnstile()
  #notBefore = -Infinity

  /**
   * Runs one poll.
   *
   * @param urgent - without the pause: before and after a change
   */
  async run<T>(ctx: CallContext, urgent: boolean, poll: () => Promise<T>): Promise<T> {
    while (!urgent) {
      const wait = this.#notBefore - ctx.clock.now()
      if (!(wait > 0)) break
      await pause(ctx.clock, wait, ctx.signal)
    }
    return this.#turn.run(ctx.signal, async () => {
      const from = ctx.clock.now()
      const result = await poll()
      const now = ctx.clock.now()
      this.#notBefore = now + Math.min(LONGEST_PAUSE, SHARE * (now - from))
      return result
    })
  }
}
