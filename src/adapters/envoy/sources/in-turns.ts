import { setImmediate as breathe } from 'node:timers/promises'
import type { Steps } from '../codec/steps.js'

/** One step in each turn of the event loop, so that nothing else waits for all of them. */
export async function inTurns<T>(steps: Steps<T>): Promise<T> {
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
    await breathe()
  }
}
