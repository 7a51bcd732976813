import type { EndpointView, Strategy, StrategyInput, Verdict } from './strategy.js'

/**
 * What kube-proxy of one node uses: the ready ones; if there is none, the terminating ones that
 * still serve; nothing else. Everything outside of that set is left out (flows that exist live on in
 * conntrack). Under the local policy only endpoints of the node count, and hints don't.
 */
export const kubeProxy: Strategy = (endpoints, context) => {
  const usable = context.policy === 'local' ? ofNode(context.nodeName) : byHints(endpoints, context)
  const ready = (one: EndpointView): boolean => one.ready && usable(one)
  // Hints are dropped where they would leave no ready endpoint, so the fallback never looks at them.
  const fallback = (one: EndpointView): boolean =>
    one.serving && one.terminating && (context.policy !== 'local' || usable(one))
  const anyReady = endpoints.some(ready)
  return endpoints.map((one) => {
    if (ready(one)) return { action: 'serve', reason: 'ready' }
    if (!anyReady && fallback(one)) return FALLBACK
    if (!usable(one)) return { action: 'exclude', reason: elsewhere(context) }
    return one.serving && one.terminating ? YIELDS : UNREADY
  })
}

const FALLBACK: Verdict = { action: 'serve', reason: 'terminating but serving, and none is ready' }
const YIELDS: Verdict = { action: 'exclude', reason: 'terminating, and a ready one is there' }
const UNREADY: Verdict = { action: 'exclude', reason: 'not ready' }

function elsewhere(context: StrategyInput): string {
  return context.policy === 'local' ? 'on another node' : 'hinted for another node or zone'
}

function ofNode(nodeName: string): (one: EndpointView) => boolean {
  return ({ endpoint }) => endpoint.nodeName === nodeName
}

/**
 * Hints count only where every ready endpoint has one of the kind and one of them is for us: node
 * hints first, then zone hints.
 */
function byHints(
  endpoints: readonly EndpointView[],
  { topology, nodeName, zone }: StrategyInput,
): (one: EndpointView) => boolean {
  const everywhere = (): boolean => true
  if (topology !== true) return everywhere
  const ready = endpoints.filter((one) => one.ready)
  if (ready.length === 0) return everywhere
  for (const [kind, here] of [
    ['forNodes', nodeName],
    ['forZones', zone],
  ] as const) {
    const names = ({ endpoint }: EndpointView): readonly string[] => endpoint.hints?.[kind] ?? []
    const forUs = (one: EndpointView): boolean => here !== undefined && names(one).includes(here)
    if (ready.every((one) => names(one).length > 0) && ready.some(forUs)) return forUs
  }
  return everywhere
}
