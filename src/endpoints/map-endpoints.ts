import {
  addressTypeOf,
  endpointsShape,
  normaliseConditions,
  tierOf,
  type AddressType,
  type EndpointInput,
  type Tier,
  type Tri,
} from './endpoint.js'
import * as s from './shape.js'
import { strategies, type StrategyName } from './strategies.js'
import type {
  Action,
  EndpointHealth,
  EndpointView,
  Strategy,
  StrategyContext,
  Verdict,
} from './strategy.js'

/** The decision about one endpoint, and its reason. */
export interface Decision {
  /** The address as given; empty if the endpoint has none. */
  readonly address: string
  readonly addressType: AddressType
  readonly port?: number
  readonly action: Action
  /** The reason, in a few words for people. */
  readonly reason: string
  readonly health: EndpointHealth
  /** The endpoint's weight if it serves, 0 otherwise. */
  readonly weight: number
  /** What to do if the balancer does not have it: it makes no sense to add a server only to drain it. */
  readonly ifAbsent: 'add' | 'skip'
  /**
   * Whether it still answers, as far as the conditions show (tiers 1 to 3). A drained endpoint that does not is held
   * like one that is gone.
   */
  readonly serving: boolean
  /** The endpoint of this decision. */
  readonly endpoint: EndpointInput
}

/** Options of {@link mapEndpoints}. */
export interface MapOptions {
  /** The strategy: a name, or your own function. @default 'serve-terminating-fallback' */
  readonly strategy?: StrategyName | Strategy
  /**
   * What to do with endpoints that do not answer and are still in the set. Only the default strategy and operator
   * drains use it. Excluded endpoints are removed from the balancer once idle.
   * @default 'drain'
   */
  readonly unready?: 'drain' | 'exclude'
  /** The settings of named strategies. */
  readonly context?: StrategyContext
}

const SUBJECT = 'mapEndpoints()'

/**
 * Decides for each endpoint of a set whether it serves, drains or is left out: one decision per
 * endpoint, in order. Pure: no clock, no memory, the input is not changed.
 *
 * Each port name is a set: endpoints of `http` and `metrics` are judged separately.
 *
 * @throws `INVALID_OPTIONS` with the path, for input of a shape the types do not allow
 *
 * @example
 * ```ts
 * import { mapEndpoints } from 'drainable/endpoints'
 *
 * const decisions = mapEndpoints([
 *   { addresses: ['10.0.0.1'], conditions: { ready: false, serving: true, terminating: true } },
 *   { addresses: ['10.0.0.2'], conditions: { ready: true } },
 * ])
 * decisions.map((d) => d.action) // ['drain', 'serve']
 * ```
 */
export function mapEndpoints(
  endpoints: readonly EndpointInput[],
  options: MapOptions = {},
): Decision[] {
  const byName = s.word(...Object.keys(strategies))
  s.checkOptions(SUBJECT, options, {
    strategy: s.optional((one) => (typeof one === 'function' ? undefined : byName(one))),
    unready: s.optional(s.word('drain', 'exclude')),
    context: s.optional(contextShape()),
  })
  s.check(SUBJECT, 'endpoints', endpoints, endpointsShape)
  const { strategy = 'serve-terminating-fallback', unready = 'drain' } = options
  const judge = typeof strategy === 'function' ? strategy : strategies[strategy]
  const decisions = new Array<Decision>(endpoints.length)
  const sets = new Map<string, View[]>()
  const seen: (Seen | undefined)[] = []
  let name: string | undefined
  let set: View[] = []
  for (let i = 0; i < endpoints.length; i++) {
    const endpoint = endpoints[i] as EndpointInput
    const view = new View(endpoint, i, seeConditions(endpoint, seen))
    const verdict = beforeStrategy(view, unready)
    if (verdict !== undefined) {
      decisions[i] = decide(view, verdict)
      continue
    }
    const { portName = '' } = endpoint
    // Nearly always the next endpoint has the same name as the last.
    if (name !== portName) {
      name = portName
      set = sets.get(name) ?? []
      sets.set(name, set)
    }
    set.push(view)
  }
  for (const views of sets.values()) {
    const verdicts = judge(views, { ...options.context, unready })
    checkVerdicts(verdicts, views.length)
    let n = 0
    for (const view of views) decisions[view.place] = decide(view, verdicts[n++] as Verdict)
  }
  return decisions
}

/** What is decided without the strategy: it is never a candidate. */
function beforeStrategy(
  { endpoint: { addresses, weight = 1, intent }, tier }: EndpointView,
  unready: 'drain' | 'exclude',
): Verdict | undefined {
  if (addresses[0] === undefined || addresses[0] === '') {
    return { action: 'exclude', reason: 'it has no address' }
  }
  if (intent !== 'hard' && weight > 0) return undefined
  const why = intent === 'hard' ? '' : `: weight ${weight}`
  return { action: tier <= 3 ? 'drain' : unready, reason: `drained by its operator${why}` }
}

/** The part of a view that its conditions decide: 27 combinations, so they are shared. */
type Seen = Omit<EndpointView, 'endpoint'>

/** A few fields instead of seven: there is one for each endpoint of a cluster. */
class View implements EndpointView {
  readonly endpoint: EndpointInput
  /** Its place in the list. */
  readonly place: number
  readonly #seen: Seen

  constructor(endpoint: EndpointInput, place: number, seen: Seen) {
    this.endpoint = endpoint
    this.place = place
    this.#seen = seen
  }

  get said(): EndpointView['said'] {
    return this.#seen.said
  }
  get ready(): boolean {
    return this.#seen.ready
  }
  get serving(): boolean {
    return this.#seen.serving
  }
  get terminating(): boolean {
    return this.#seen.terminating
  }
  get tier(): Tier {
    return this.#seen.tier
  }
}

function seeConditions({ conditions, intent }: EndpointInput, known: (Seen | undefined)[]): Seen {
  const index =
    9 * rank(conditions?.ready) + 3 * rank(conditions?.serving) + rank(conditions?.terminating)
  const seen = (known[index] ??= seenOf(conditions))
  return seen.tier === 1 && intent === 'soft' ? (known[SOFT] ??= seenOf(LEAVING)) : seen
}

function rank(value: Tri): number {
  if (value === undefined || value === null) return 0
  return value ? 1 : 2
}

const LEAVING = { ready: false, serving: true, terminating: true }
const SOFT = 27

function seenOf(conditions: EndpointInput['conditions']): Seen {
  const normal = normaliseConditions(conditions)
  const said = {
    ready: conditions?.ready ?? undefined,
    serving: conditions?.serving ?? undefined,
    terminating: conditions?.terminating ?? undefined,
  }
  return { said, ...normal, tier: tierOf(normal) }
}

/** Written out twice, so that each decision is made in one piece: a hundred thousand are made at once. */
function decide({ endpoint, tier }: View, verdict: Verdict): Decision {
  const { action } = verdict
  const { port, note } = endpoint
  const address = endpoint.addresses[0] ?? ''
  const addressType = endpoint.addressType ?? addressTypeOf(address)
  const serves = action === 'serve'
  const reason = note === undefined ? verdict.reason : `${verdict.reason} (${note})`
  const health = action === 'exclude' ? 'ABSENT' : (verdict.health ?? HEALTH[action])
  const weight = serves ? (endpoint.weight ?? 1) : 0
  const ifAbsent = serves && endpoint.ifAbsent !== 'skip' ? 'add' : 'skip'
  const serving = tier <= 3 && address !== ''
  return port === undefined
    ? { address, addressType, action, reason, health, weight, ifAbsent, serving, endpoint }
    : { address, addressType, port, action, reason, health, weight, ifAbsent, serving, endpoint }
}

const HEALTH = { serve: 'HEALTHY', drain: 'DRAINING' } as const satisfies Record<
  'serve' | 'drain',
  EndpointHealth
>

/** The shape of {@link StrategyContext}. */
function contextShape(): s.Shape {
  const shape = s.strictObject<StrategyContext>({
    policy: s.optional(s.word('cluster', 'local')),
    nodeName: s.nullable(s.text),
    zone: s.nullable(s.text),
    topology: s.nullable(s.flag),
    persistentSession: s.nullable(s.flag),
    sendUnhealthy: s.nullable(s.flag),
  })
  return (found) => {
    const fault = shape(found)
    if (fault !== undefined || (found as StrategyContext).policy !== 'local') return fault
    const { nodeName } = found as StrategyContext
    return s.at('nodeName', s.filled(nodeName, `a node's name with the policy 'local'`))
  }
}

function checkVerdicts(verdicts: readonly Verdict[], count: number): void {
  const path = `the strategy's answer`
  s.check(SUBJECT, path, verdicts, (found) => s.each(found, 'a list of verdicts', verdictFault))
  if (verdicts.length === count) return
  s.refuse(SUBJECT, `the length of ${path}`, verdicts.length, `one verdict per endpoint, ${count}`)
}

function verdictFault(found: unknown): s.Fault | undefined {
  if (!s.isObject(found)) return s.wrong(found, 'a verdict')
  const { health } = found
  return (
    s.at('action', s.oneOf(found.action, ACTIONS)) ??
    s.at('reason', s.text(found.reason)) ??
    s.at('health', health === undefined ? undefined : s.oneOf(health, HEALTHS))
  )
}

/** The words of an {@link Action}. */
export const ACTIONS: readonly Action[] = ['serve', 'drain', 'exclude']
const HEALTHS: readonly EndpointHealth[] = ['HEALTHY', 'DRAINING', 'UNHEALTHY', 'UNKNOWN', 'ABSENT']
