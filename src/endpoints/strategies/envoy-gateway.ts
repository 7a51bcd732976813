import type { EndpointView, Strategy, Verdict } from './strategy.js'

const ACTIVE: Verdict = { action: 'serve', health: 'UNKNOWN', reason: 'not draining' }

/** Envoy Gateway since v1.6.0 (pull 7253, 2025-10): judged one by one, nothing left out. */
export const envoyGateway: Strategy = (endpoints) =>
  endpoints.map(({ said }) => {
    if (said.serving !== undefined && said.terminating !== undefined) {
      if (said.terminating) return { action: 'drain', reason: 'terminating' }
      return said.serving ? ACTIVE : { action: 'drain', reason: 'not serving' }
    }
    return said.ready === false ? { action: 'drain', reason: 'not ready' } : ACTIVE
  })

/** Envoy Gateway v1.3.0 to v1.5.x: pull 4946 as it was merged on 2025-01-17. */
export const envoyGateway13: Strategy = (endpoints) =>
  endpoints.map(({ said }) => {
    if (said.serving !== undefined && said.terminating !== undefined) {
      if (!said.serving) return { action: 'exclude', reason: 'not serving' }
      return said.terminating ? { action: 'drain', reason: 'terminating' } : ACTIVE
    }
    return said.ready === false ? { action: 'exclude', reason: 'not ready' } : ACTIVE
  })

/** The table proposed in pull 4946 on 2025-01-08: serving and terminating only, judged as a set. */
export const pr4946Proposal: Strategy = (endpoints) => {
  const anyActive = endpoints.some(isActive)
  return endpoints.map((one) => proposed(one, anyActive))
}

/** The same with the objection of 2025-01-10: what is terminating and not serving is left out beside an active one. */
export const pr4946Objection: Strategy = (endpoints) => {
  const anyActive = endpoints.some(isActive)
  return endpoints.map((one) =>
    !one.serving && one.terminating && anyActive
      ? { action: 'exclude', reason: 'terminating, not serving, and an active one is there' }
      : proposed(one, anyActive),
  )
}

function isActive({ serving, terminating }: EndpointView): boolean {
  return serving && !terminating
}

function proposed({ serving, terminating }: EndpointView, anyActive: boolean): Verdict {
  if (terminating && anyActive) {
    return { action: 'drain', reason: 'terminating, and an active one is there' }
  }
  if (!serving) return { action: 'drain', health: 'UNHEALTHY', reason: 'not serving' }
  return {
    action: 'serve',
    reason: terminating ? 'terminating but serving, and none is active' : 'active',
  }
}
