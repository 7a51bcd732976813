/** The clients, in a process of their own. */
import { setTimeout as pass } from 'node:timers/promises'
import { request } from '../../../test/support/haproxy-traffic.js'
import { now, serve } from './child.js'

/** Between two requests of one client, ms: they shall not take a core of their own. */
const THINKS = 2

/** What came of the requests since it was asked last. */
export interface Asked {
  readonly requests: number
  readonly failed: number
  /** When an answer of the server came that was waited for. */
  readonly hits: readonly number[]
}

let asked = { requests: 0, failed: 0, hits: [] as number[] }
let over = new AbortController()
let asking: Promise<unknown> = Promise.resolve()

export const calls = {
  /** One request that the backend holds. */
  hold: async (port: number, cookie: string) => (await request(port, '/hold', { cookie })).status,
  /** Asks one after another, each on a new connection, with the cookie of a server. */
  begin(port: number, cookie: string, clients: number): void {
    over = new AbortController()
    const client = async (): Promise<void> => {
      while (!over.signal.aborted) {
        const { server, status } = await request(port, '/', { cookie })
        asked.requests += 1
        if (status !== 200) asked.failed += 1
        if (server === cookie) asked.hits.push(now())
        await pass(THINKS)
      }
    }
    asking = Promise.all(Array.from({ length: clients }, client))
  },
  asked(): Asked {
    const so = asked
    asked = { requests: 0, failed: 0, hits: [] }
    return so
  },
  async end(): Promise<Asked> {
    over.abort()
    await asking
    return calls.asked()
  },
}

export type Clients = typeof calls

serve(calls)
