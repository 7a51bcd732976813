import type { Strategy } from './strategy.js'

/**
 * Istio's pilot: judged one by one, and what is not ready may be on its way out unless it says that
 * it is not. `DRAINING` exists only for Services with persistent sessions; other terminating
 * endpoints are taken away at once.
 */
export const istio: Strategy = (endpoints, context) =>
  endpoints.map(({ said }) => {
    if (said.ready !== false) return { action: 'serve', reason: 'ready' }
    if (said.terminating !== false) {
      return context.persistentSession === true && said.serving !== false
        ? { action: 'drain', reason: 'terminating; persistent sessions may finish' }
        : { action: 'exclude', reason: 'not ready and terminating' }
    }
    return (context.sendUnhealthy ?? true)
      ? { action: 'drain', health: 'UNHEALTHY', reason: 'not ready' }
      : { action: 'exclude', reason: 'not ready' }
  })
