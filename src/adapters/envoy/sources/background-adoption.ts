import { pause, systemClock } from '../../../provider/clock.js'
import type { Assignment } from '../codec/assignment.js'
import type { ServedSets } from './served-sets.js'
import type { SinkHost } from './sink.js'

const AGAIN = 1_000

/** Adopts from the start on: proxies that come up wait for their sets, whoever drains or not. */
export async function adoptInBackground(
  sets: ServedSets<Assignment>,
  host: SinkHost,
  signal: AbortSignal,
): Promise<void> {
  while (!sets.loaded && !signal.aborted) {
    try {
      await sets.adopt(host, signal)
    } catch {
      // Who needs the sets gets the error from load(); here it is only tried again.
      await pause(systemClock, AGAIN, signal).catch(() => undefined)
    }
  }
}
