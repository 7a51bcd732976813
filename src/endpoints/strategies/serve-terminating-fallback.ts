import type { Strategy, Verdict } from './strategy.js'

/**
 * The default strategy. The best of the tiers 1 to 3 that is there serves, the others of them drain;
 * what does not answer (tiers 4 and 5) drains too, or is excluded if the caller wants it so.
 *
 * It looks at the whole set because the last good endpoint must go on serving while it terminates:
 * a rollout of one replica must not be a blackout. A terminating endpoint yields to a ready one even
 * if it is published as ready (kube-proxy, Cilium and Istio go on using it): publishing not-ready
 * addresses asks to show a dying pod, not to prefer it.
 */
export const serveTerminatingFallback: Strategy = (endpoints, { unready }) => {
  let best = 4
  for (const { tier } of endpoints) if (tier < best) best = tier
  return endpoints.map(({ tier, endpoint }) => {
    const soft = endpoint.intent === 'soft'
    switch (tier) {
      case 1:
        return READY
      case 2:
        if (best === 2) return soft ? MARKED_BUT_LAST : TERMINATING_BUT_LAST
        return soft ? MARKED : TERMINATING
      case 3:
        return best === 3 ? PUBLISHED_BUT_LAST : PUBLISHED
      case 4:
        return unready === 'drain' ? UNREADY : UNREADY_EXCLUDED
      case 5:
        return unready === 'drain' ? SHUTTING_DOWN : SHUTTING_DOWN_EXCLUDED
    }
  })
}

const READY: Verdict = { action: 'serve', reason: 'ready' }
const TERMINATING: Verdict = {
  action: 'drain',
  reason: 'terminating but still serving; a ready one takes the new work',
}
const TERMINATING_BUT_LAST: Verdict = {
  action: 'serve',
  reason: 'terminating but still serving, and no ready one is there to take over',
}
const MARKED: Verdict = {
  action: 'drain',
  reason: 'marked to leave and still serving; a ready one takes the new work',
}
const MARKED_BUT_LAST: Verdict = {
  action: 'serve',
  reason: 'marked to leave but still serving, and no ready one is there to take over',
}
const PUBLISHED: Verdict = {
  action: 'drain',
  reason: 'terminating, not serving, only published as ready; a better one takes the new work',
}
const PUBLISHED_BUT_LAST: Verdict = {
  action: 'serve',
  reason: 'terminating, not serving, but published as ready, and nothing better is there',
}
const UNREADY: Verdict = { action: 'drain', reason: 'not ready: it is starting or its probe fails' }
const UNREADY_EXCLUDED: Verdict = { ...UNREADY, action: 'exclude' }
const SHUTTING_DOWN: Verdict = { action: 'drain', reason: 'terminating and no longer serving' }
const SHUTTING_DOWN_EXCLUDED: Verdict = { ...SHUTTING_DOWN, action: 'exclude' }
