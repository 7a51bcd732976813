import { systemClock, type Clock } from '../../provider/clock.js'
import { formatDuration } from '../../provider/duration.js'
import { DrainableError } from '../../provider/error.js'

/** How long a ticket store, or `onTicket`, may take for one answer, in milliseconds. */
export const ANSWER_LIMIT = 30_000

/**
 * What a ticket store answers. One that hangs, like one that fails, must not keep a server drained, nor a
 * run from its end.
 *
 * @param clock - the machine's own where nothing else is said: a store answers in real time, also beside
 * a balancer on a clock that stands still
 * @throws what the store threw, or `TICKET_INVALID`
 */
export async function answerOfStore<T>(
  answer: Promise<T>,
  clock: Clock = systemClock,
  limit: number = ANSWER_LIMIT,
): Promise<T> {
  let cancel = (): void => undefined
  const late = new Promise<never>((_, reject) => {
    const words = `no answer from the ticket store within ${formatDuration(limit)}`
    cancel = clock.setTimeout(() => reject(new DrainableError('TICKET_INVALID', words)), limit)
  })
  try {
    return await Promise.race([answer, late])
  } finally {
    cancel()
  }
}
