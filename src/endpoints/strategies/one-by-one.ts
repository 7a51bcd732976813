import type { Strategy, Verdict } from './strategy.js'

const SERVE: Verdict = { action: 'serve', reason: 'ready' }
const NOT_READY: Verdict = { action: 'exclude', reason: 'not ready' }

/**
 * Ready or out: Contour, ingress-nginx, openshift/router, Linkerd, kgateway, and haproxy-ingress
 * without drain support. The last endpoint of a rollout vanishes while it still serves.
 */
export const readyOnly: Strategy = (endpoints) =>
  endpoints.map(({ said }) => (said.ready === false ? NOT_READY : SERVE))

/** The same, but a ready that is not said means not ready: haproxytech ingress, Traefik for the Gateway API, TCP and UDP. */
export const readyOnlyStrict: Strategy = (endpoints) =>
  endpoints.map(({ said }) => (said.ready === true ? SERVE : NOT_READY))

/** haproxy-ingress with `drain-support: true`: weight 0 for what is not ready or being deleted. */
export const haproxyIngressDrain: Strategy = (endpoints) =>
  endpoints.map(({ said }) => {
    if (said.terminating === true) return { action: 'drain', reason: 'the pod is being deleted' }
    return said.ready === false ? { action: 'drain', reason: 'not ready' } : SERVE
  })

/** Traefik for HTTP: ready is not looked at; terminating ones are fenced, and all fenced is a 503. */
export const traefik: Strategy = (endpoints) =>
  endpoints.map(({ serving, terminating }) => {
    if (!serving) return { action: 'exclude', reason: 'not serving' }
    if (terminating) return { action: 'drain', reason: 'fenced: sticky clients only' }
    return { action: 'serve', reason: 'serving' }
  })

/** A network endpoint group of Google Cloud: ready or not is left to the load balancer's own checks. */
export const gceNeg: Strategy = (endpoints) =>
  endpoints.map(({ terminating }) =>
    terminating
      ? { action: 'exclude', reason: 'terminating' }
      : { action: 'serve', reason: 'not terminating' },
  )
