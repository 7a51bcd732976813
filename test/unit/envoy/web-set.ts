import { systemClock } from '../../../src/provider/clock.js'

/** Names of the endpoints of cluster `web`. */
export const names = ['10.0.0.1:80', '10.0.0.2:80', '10.0.0.3:80', '10.0.0.4:80']

/** A context of a call that ends after so many milliseconds. */
export const ctx = (ms = 10_000) => ({ signal: AbortSignal.timeout(ms), clock: systemClock })

/** The endpoint set of cluster `web`, as a control plane publishes it. */
export const setOf = (members: readonly string[]) => ({
  cluster_name: 'web',
  endpoints: [
    {
      lb_endpoints: members.map((name) => ({
        endpoint: { address: { socket_address: { address: name.slice(0, -3), port_value: 80 } } },
      })),
    },
  ],
})
