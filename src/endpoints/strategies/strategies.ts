import { ciliumL4, ciliumL7 } from './cilium.js'
import { envoyGateway, envoyGateway13, pr4946Objection, pr4946Proposal } from './envoy-gateway.js'
import { istio } from './istio.js'
import { kubeProxy } from './kube-proxy.js'
import { gceNeg, haproxyIngressDrain, readyOnly, readyOnlyStrict, traefik } from './one-by-one.js'
import { serveTerminatingFallback } from './serve-terminating-fallback.js'
import type { Strategy } from './strategy.js'

/** The names of the strategies: the default one, and one for each real system that differs. */
export type StrategyName =
  | 'serve-terminating-fallback'
  | 'kube-proxy'
  | 'cilium-l4'
  | 'cilium-l7'
  | 'envoy-gateway'
  | 'envoy-gateway-1.3'
  | 'pr4946-proposal'
  | 'pr4946-objection'
  | 'istio'
  | 'ready-only'
  | 'ready-only-strict'
  | 'haproxy-ingress-drain'
  | 'traefik'
  | 'gce-neg'

/**
 * The named strategies, to use as they are or inside your own. `docs/endpoint-conditions.md` shows the decisions of
 * each in every case.
 */
export const strategies: Readonly<Record<StrategyName, Strategy>> = {
  'serve-terminating-fallback': serveTerminatingFallback,
  'kube-proxy': kubeProxy,
  'cilium-l4': ciliumL4,
  'cilium-l7': ciliumL7,
  'envoy-gateway': envoyGateway,
  'envoy-gateway-1.3': envoyGateway13,
  'pr4946-proposal': pr4946Proposal,
  'pr4946-objection': pr4946Objection,
  istio,
  'ready-only': readyOnly,
  'ready-only-strict': readyOnlyStrict,
  'haproxy-ingress-drain': haproxyIngressDrain,
  traefik,
  'gce-neg': gceNeg,
}
