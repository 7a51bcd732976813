import type { EndpointView, Strategy } from './strategy.js'

/** Cilium's backend states, as its load balancer derives them from the conditions. */
type BackendState = 'Active' | 'Terminating' | 'TerminatingNotServing' | 'Maintenance'

function stateOf({ ready, serving, terminating }: EndpointView): BackendState {
  if (ready) return 'Active'
  if (!terminating) return 'Maintenance'
  return serving ? 'Terminating' : 'TerminatingNotServing'
}

/** Cilium in eBPF: what is not used any more stays known, so that existing connections live on. */
export const ciliumL4: Strategy = (endpoints) => {
  const states = endpoints.map(stateOf)
  const anyActive = states.includes('Active')
  return states.map((state) =>
    state === 'Active' || (state === 'Terminating' && !anyActive)
      ? { action: 'serve', reason: `state ${state}` }
      : { action: 'drain', reason: `state ${state}` },
  )
}

/** Cilium's Envoy, since pull 46642 (merged 2026-06): terminating ones are the fallback, never `DRAINING` then. */
export const ciliumL7: Strategy = (endpoints) => {
  const states = endpoints.map(stateOf)
  const anyActive = states.includes('Active')
  return states.map((state) => {
    const reason = `state ${state}`
    switch (state) {
      case 'Active':
        return { action: 'serve', health: 'UNKNOWN', reason }
      case 'Terminating':
        return anyActive
          ? { action: 'drain', reason }
          : { action: 'serve', health: 'UNKNOWN', reason: `${state}, and none is Active` }
      case 'TerminatingNotServing':
      case 'Maintenance':
        return { action: 'exclude', reason }
    }
  })
}
