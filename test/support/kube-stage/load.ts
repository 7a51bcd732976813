/** Requests without a pause, as clients of a Service send them. */
import { setTimeout as pause } from 'node:timers/promises'
import { request } from '../haproxy-traffic.js'

export interface Load extends AsyncDisposable {
  /** How many answers had which status; `0`: none. */
  readonly statuses: ReadonlyMap<number, number>
  readonly total: number
}

/** @param gap - milliseconds between two requests of one client */
export function traffic(port: number, { clients = 2, gap = 0 } = {}): Load {
  const statuses = new Map<number, number>()
  let goesOn = true
  const one = async (): Promise<void> => {
    while (goesOn) {
      const status = await request(port, '/').then(
        (reply) => reply.status,
        () => 0,
      )
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      if (gap > 0) await pause(gap)
    }
  }
  const all = Promise.all(Array.from({ length: clients }, one))
  return {
    statuses,
    get total() {
      return [...statuses.values()].reduce((sum, count) => sum + count, 0)
    },
    async [Symbol.asyncDispose]() {
      goesOn = false
      await all
    },
  }
}
