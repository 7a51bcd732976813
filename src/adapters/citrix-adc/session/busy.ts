import { doubling, retried } from '../../../kit/retry.js'
import type { CallContext } from '../../../provider/contract.js'
import { classify } from '../codec/errors.js'
import type { NitroReply } from '../codec/nitro.js'

/** A busy appliance is asked four times in all, in milliseconds between two tries. */
const WAITS = doubling(250, 3)

/** What a busy appliance said. */
class Busy extends Error {
  readonly reply: NitroReply

  constructor(reply: NitroReply) {
    super('the appliance is busy')
    this.reply = reply
  }
}

export function isBusy(reply: NitroReply): boolean {
  return classify(reply) === 'busy'
}

/**
 * Asks again what a busy appliance did not do.
 *
 * @param again - whether this reply says that nothing was done
 * @returns the last reply, a busy one too
 */
export async function askedAgain(
  ctx: Pick<CallContext, 'clock' | 'signal'>,
  again: (reply: NitroReply) => boolean,
  ask: () => Promise<NitroReply>,
): Promise<NitroReply> {
  const options = { waits: WAITS, again: (error: unknown) => error instanceof Busy }
  try {
    return await retried(ctx, options, async () => {
      const reply = await ask()
      if (again(reply)) throw new Busy(reply)
      return reply
    })
  } catch (error) {
    if (error instanceof Busy) return error.reply
    throw error
  }
}
