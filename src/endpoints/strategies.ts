/**
 * The strategies as tables, to be read beside those of the systems that they reproduce.
 *
 * A row begins with the conditions that it is about: ready, serving, terminating. `T` is true, `F` false, `t` true or
 * unset, `f` false or unset, `*` any; a fourth letter `s` is a soft intent. The first row that fits decides. Where a row
 * goes on, other conditions and another verdict follow: so it is judged if one of those is in the set.
 */
import type { EndpointHealth, EndpointView, Strategy, StrategyInput, Verdict } from './strategy.js'

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
  /**
   * The default strategy. The best of the tiers 1 to 3 that is there serves, the others of them drain;
   * what does not answer (tiers 4 and 5) drains too, or is excluded if the caller wants it so.
   *
   * It looks at the whole set because the last good endpoint must go on serving while it terminates:
   * a rollout of one replica must not be a blackout. A terminating endpoint yields to a ready one even
   * if it is published as ready (kube-proxy, Cilium and Istio go on using it): publishing not-ready
   * addresses asks to show a dying pod, not to prefer it.
   */
  'serve-terminating-fallback': (endpoints, { unready }) =>
    judge(endpoints, [
      ['t*f', serve('ready')],
      [
        '*tTs',
        serve('marked to leave but still serving, and no ready one is there to take over'),
        't*f',
        drain('marked to leave and still serving; a ready one takes the new work'),
      ],
      [
        '*tT',
        serve('terminating but still serving, and no ready one is there to take over'),
        't*f',
        drain('terminating but still serving; a ready one takes the new work'),
      ],
      [
        'tFT',
        serve('terminating, not serving, but published as ready, and nothing better is there'),
        't*f *tT',
        drain('terminating, not serving, only published as ready; a better one takes the new work'),
      ],
      ['F*f', { action: unready, reason: 'not ready: it is starting or its probe fails' }],
      ['FFT', { action: unready, reason: 'terminating and no longer serving' }],
    ]),

  /**
   * What kube-proxy of one node uses: the ready ones; if there is none, the terminating ones that
   * still serve; nothing else. Everything outside of that set is left out (flows that exist live on in
   * conntrack). Under the local policy only endpoints of the node count, and hints don't.
   */
  'kube-proxy': (endpoints, context) => {
    const usable =
      context.policy === 'local' ? ofNode(context.nodeName) : byHints(endpoints, context)
    const verdicts = judge(endpoints.filter(usable), [
      ['t**', serve('ready')],
      [
        'FtT',
        serve('terminating but serving, and none is ready'),
        't**',
        exclude('terminating, and a ready one is there'),
      ],
      ['F**', exclude('not ready')],
    ]).values()
    const where = context.policy === 'local' ? 'on another node' : 'hinted for another node or zone'
    return endpoints.map(
      (one) => (usable(one) ? verdicts.next().value : undefined) ?? exclude(where),
    )
  },

  /** Cilium in eBPF: what is not used any more stays known, so that existing connections live on. */
  'cilium-l4': (endpoints) =>
    judge(endpoints, [
      ['t**', serve('state Active')],
      ['FtT', serve('state Terminating'), 't**', drain('state Terminating')],
      ['FFT', drain('state TerminatingNotServing')],
      ['F*f', drain('state Maintenance')],
    ]),

  /** Cilium's Envoy, since pull 46642 (merged 2026-06): terminating ones are the fallback, never `DRAINING` then. */
  'cilium-l7': (endpoints) =>
    judge(endpoints, [
      ['t**', serve('state Active', 'UNKNOWN')],
      [
        'FtT',
        serve('Terminating, and none is Active', 'UNKNOWN'),
        't**',
        drain('state Terminating'),
      ],
      ['FFT', exclude('state TerminatingNotServing')],
      ['F*f', exclude('state Maintenance')],
    ]),

  /** Envoy Gateway since v1.6.0 (pull 7253, 2025-10): judged one by one, nothing left out. */
  'envoy-gateway': (endpoints) =>
    judge(endpoints, [
      ['*TT *FT', drain('terminating')],
      ['*TF', serve('not draining', 'UNKNOWN')],
      ['*FF', drain('not serving')],
      ['F**', drain('not ready')],
      ['***', serve('not draining', 'UNKNOWN')],
    ]),

  /** Envoy Gateway v1.3.0 to v1.5.x: pull 4946 as it was merged on 2025-01-17. */
  'envoy-gateway-1.3': (endpoints) =>
    judge(endpoints, [
      ['*FT *FF', exclude('not serving')],
      ['*TT', drain('terminating')],
      ['*TF', serve('not draining', 'UNKNOWN')],
      ['F**', exclude('not ready')],
      ['***', serve('not draining', 'UNKNOWN')],
    ]),

  /** The table proposed in pull 4946 on 2025-01-08: serving and terminating only, judged as a set. */
  'pr4946-proposal': (endpoints) =>
    judge(endpoints, pr4946(drain('terminating, and an active one is there'))),

  /** The same with the objection of 2025-01-10: what is terminating and not serving is left out beside an active one. */
  'pr4946-objection': (endpoints) =>
    judge(endpoints, pr4946(exclude('terminating, not serving, and an active one is there'))),

  /**
   * Istio's pilot: judged one by one, and what is not ready may be on its way out unless it says that
   * it is not. `DRAINING` exists only for Services with persistent sessions; other terminating
   * endpoints are taken away at once.
   */
  istio: (endpoints, { persistentSession, sendUnhealthy = true }) => {
    const out = exclude('not ready and terminating')
    const last = drain('terminating; persistent sessions may finish')
    return judge(endpoints, [
      ['t**', serve('ready')],
      ['F*F', sendUnhealthy ? drain('not ready', 'UNHEALTHY') : exclude('not ready')],
      ['Ft*', persistentSession === true ? last : out],
      ['FF*', out],
    ])
  },

  /**
   * Ready or out: Contour, ingress-nginx, openshift/router, Linkerd, kgateway, and haproxy-ingress
   * without drain support. The last endpoint of a rollout vanishes while it still serves.
   */
  'ready-only': (endpoints) =>
    judge(endpoints, [
      ['t**', serve('ready')],
      ['F**', exclude('not ready')],
    ]),

  /** The same, but a ready that is not said means not ready: haproxytech ingress, Traefik for the Gateway API, TCP and UDP. */
  'ready-only-strict': (endpoints) =>
    judge(endpoints, [
      ['T**', serve('ready')],
      ['***', exclude('not ready')],
    ]),

  /** haproxy-ingress with `drain-support: true`: weight 0 for what is not ready or being deleted. */
  'haproxy-ingress-drain': (endpoints) =>
    judge(endpoints, [
      ['**T', drain('the pod is being deleted')],
      ['F**', drain('not ready')],
      ['t**', serve('ready')],
    ]),

  /** Traefik for HTTP: ready is not looked at; terminating ones are fenced, and all fenced is a 503. */
  traefik: (endpoints) =>
    judge(endpoints, [
      ['*F*', exclude('not serving')],
      ['*tT', drain('fenced: sticky clients only')],
      ['*tf', serve('serving')],
    ]),

  /** A network endpoint group of Google Cloud: ready or not is left to the load balancer's own checks. */
  'gce-neg': (endpoints) =>
    judge(endpoints, [
      ['**T', exclude('terminating')],
      ['**f', serve('not terminating')],
    ]),
}

/** One row; the head of this file says how it is read. */
type Row = readonly [conditions: string, verdict: Verdict, beside?: string, then?: Verdict]

/** @param late - of one that is terminating and does not serve, beside an active one */
function pr4946(late: Verdict): readonly Row[] {
  return [
    ['*tf', serve('active')],
    [
      '*tT',
      serve('terminating but serving, and none is active'),
      '*tf',
      drain('terminating, and an active one is there'),
    ],
    ['*FT', drain('not serving', 'UNHEALTHY'), '*tf', late],
    ['*Ff', drain('not serving', 'UNHEALTHY')],
  ]
}

function serve(reason: string, health?: EndpointHealth): Verdict {
  return health === undefined ? { action: 'serve', reason } : { action: 'serve', reason, health }
}

function drain(reason: string, health?: EndpointHealth): Verdict {
  return health === undefined ? { action: 'drain', reason } : { action: 'drain', reason, health }
}

function exclude(reason: string): Verdict {
  return { action: 'exclude', reason }
}

/** There are few kinds of conditions and many endpoints: the rows are compared with the kinds. */
function judge(endpoints: readonly EndpointView[], rows: readonly Row[]): Verdict[] {
  const kinds: string[] = []
  const kindsOf = new Uint8Array(endpoints.length)
  endpoints.forEach((one, i) => {
    const kind = kindOf(one)
    kindsOf[i] = kind
    kinds[kind] ??= lettersOf(one)
  })
  const present = Object.values(kinds)
  const verdicts = kinds.map((kind) => verdictOn(kind, present, rows))
  return endpoints.map((_, i) => verdicts[kindsOf[i] ?? 0] as Verdict)
}

function verdictOn(kind: string, present: readonly string[], rows: readonly Row[]): Verdict {
  const row = rows.find(([conditions]) => fits(kind, conditions))
  const [, verdict, beside, then = verdict] = row as Row // the rows of a strategy cover all kinds
  return beside !== undefined && present.some((one) => fits(one, beside)) ? then : verdict
}

function fits(kind: string, conditions: string): boolean {
  return conditions
    .split(' ')
    .some((pattern) =>
      Array.from(pattern).every((one, i) => LETTERS[one]?.includes(kind.charAt(i))),
    )
}

/** What each letter of a row stands for. */
const LETTERS: Readonly<Record<string, string>> = {
  T: 'T',
  F: 'F',
  t: 'T-',
  f: 'F-',
  '*': 'TF-',
  s: 's',
}

/** A number for the conditions and the intent, from 0 to 53. */
function kindOf({ said, endpoint }: EndpointView): number {
  const kind = 9 * digit(said.ready) + 3 * digit(said.serving) + digit(said.terminating)
  return endpoint.intent === 'soft' ? 27 + kind : kind
}

function digit(condition: boolean | undefined): number {
  if (condition === undefined) return 0
  return condition ? 1 : 2
}

/** The same as letters: `TTF.`, `F-T.`, `FTTs`. */
function lettersOf({ said, endpoint }: EndpointView): string {
  const three = [said.ready, said.serving, said.terminating].map((one) => '-TF'.charAt(digit(one)))
  return `${three.join('')}${endpoint.intent === 'soft' ? 's' : '.'}`
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
