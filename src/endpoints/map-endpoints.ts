import { addressTypeOf } from './address.js'
import { once } from '../provider/once.js'
import { normaliseConditions, tierOf, type Tier } from './slices/conditions.js'
import { actionShape, type Decision, type EndpointHealth } from './decision.js'
import { endpointsShape, type EndpointInput, type Tri } from './endpoint-input.js'
import {
  at,
  both,
  check,
  checkOptions,
  filled,
  flag,
  isObject,
  list,
  nullable,
  object,
  optional,
  refuse,
  strictObject,
  text,
  when,
  word,
  wrong,
  type Fault,
} from './shape.js'
import { strategies, type StrategyName } from './strategies/strategies.js'
import type {
  EndpointView,
  Strategy,
  StrategyContext,
  StrategyInput,
  Verdict,
} from './strategies/strategy.js'

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
  const strategy = checkMapOptions(options)
  check(SUBJECT, 'endpoints', endpoints, endpointsShape())
  const { unready = 'drain' } = options
  const context: StrategyInput = { ...options.context, unready }
  const decisions = new Array<Decision>(endpoints.length)
  const sets = new PortSets()
  const seen: (Seen | undefined)[] = []
  for (let i = 0; i < endpoints.length; i++) {
    const endpoint = endpoints[i] as EndpointInput
    const its = seeConditions(endpoint, seen)
    const verdict = beforeStrategy(endpoint, its.tier, unready)
    if (verdict === undefined) sets.add(new View(endpoint, its), i)
    else decisions[i] = decide(endpoint, its.tier, verdict)
  }
  for (const { views, places } of sets.all()) {
    const verdicts = strategy(views, context)
    checkVerdicts(verdicts, views.length)
    for (let n = 0; n < views.length; n++) {
      const [place, view, verdict] = [places[n], views[n], verdicts[n]]
      if (place === undefined || view === undefined || verdict === undefined) continue
      decisions[place] = decide(view.endpoint, view.tier, verdict)
    }
  }
  return decisions
}

/** The endpoints of one port name, and their places in the list. */
interface PortSet {
  readonly views: EndpointView[]
  readonly places: number[]
}

/** Nearly always there is only one name, and the next endpoint has the same as the last. */
class PortSets {
  readonly #sets = new Map<string, PortSet>()
  #name: string | undefined
  #last: PortSet = { views: [], places: [] }

  add(view: EndpointView, place: number): void {
    const { portName = '' } = view.endpoint
    if (portName !== this.#name) {
      this.#last = this.#sets.get(portName) ?? { views: [], places: [] }
      this.#sets.set(portName, this.#last)
      this.#name = portName
    }
    this.#last.views.push(view)
    this.#last.places.push(place)
  }

  all(): Iterable<PortSet> {
    return this.#sets.values()
  }
}

/** What is decided without the strategy: it is never a candidate. */
function beforeStrategy(
  endpoint: EndpointInput,
  tier: Tier,
  unready: 'drain' | 'exclude',
): Verdict | undefined {
  if (endpoint.addresses[0] === undefined || endpoint.addresses[0] === '') return NO_ADDRESS
  const { weight = 1, intent } = endpoint
  if (intent !== 'hard' && weight > 0) return undefined
  const reason =
    intent === 'hard' ? 'drained by its operator' : `drained by its operator: weight ${weight}`
  return { action: tier <= 3 ? 'drain' : unready, reason }
}

const NO_ADDRESS: Verdict = { action: 'exclude', reason: 'it has no address' }

/** The part of a view that its conditions decide: 27 combinations, so they are shared. */
type Seen = Omit<EndpointView, 'endpoint'>

function seeConditions(endpoint: EndpointInput, known: (Seen | undefined)[]): Seen {
  const { conditions } = endpoint
  const index =
    9 * rank(conditions?.ready) + 3 * rank(conditions?.serving) + rank(conditions?.terminating)
  const seen = (known[index] ??= seenOf(conditions))
  return seen.tier === 1 && endpoint.intent === 'soft' ? SOFT : seen
}

/** Two fields instead of six: there is one for each endpoint of a cluster. */
class View implements EndpointView {
  readonly endpoint: EndpointInput
  readonly #seen: Seen

  constructor(endpoint: EndpointInput, seen: Seen) {
    this.endpoint = endpoint
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

function rank(value: Tri): number {
  if (value === undefined || value === null) return 0
  return value ? 1 : 2
}

function seenOf(conditions: EndpointInput['conditions']): Seen {
  const normal = normaliseConditions(conditions)
  const said = {
    ready: conditions?.ready ?? undefined,
    serving: conditions?.serving ?? undefined,
    terminating: conditions?.terminating ?? undefined,
  }
  return { said, ...normal, tier: tierOf(normal) }
}

const LEAVING = { ready: false, serving: true, terminating: true } as const
const SOFT: Seen = { said: LEAVING, ...LEAVING, tier: 2 }

/** Written out twice, so that each decision is made in one piece: a hundred thousand are made at once. */
function decide(endpoint: EndpointInput, tier: Tier, verdict: Verdict): Decision {
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

function checkMapOptions(options: MapOptions): Strategy {
  checkOptions(SUBJECT, options, optionShapes())
  const { strategy = 'serve-terminating-fallback' } = options
  return typeof strategy === 'function' ? strategy : strategies[strategy]
}

const optionShapes = once(() => {
  const name = word(...Object.keys(strategies))
  const context = strictObject<StrategyContext>({
    policy: optional(word('cluster', 'local')),
    nodeName: nullable(text),
    zone: nullable(text),
    topology: nullable(flag),
    persistentSession: nullable(flag),
    sendUnhealthy: nullable(flag),
  })
  const nodeName = filled(`a node's name with the policy 'local'`)
  const local = when(({ policy }) => policy === 'local', object('an object', { nodeName }))
  return {
    strategy: optional((one) => (typeof one === 'function' ? undefined : name(one))),
    unready: optional(word('drain', 'exclude')),
    context: optional(both(context, local)),
  }
})

const verdictsShape = once(() => list('a list of verdicts', verdict))

function verdict(found: unknown): Fault | undefined {
  if (!isObject(found)) return wrong(found, 'a verdict')
  const { health } = found
  return (
    at('action', actionShape()(found.action)) ??
    at('reason', text(found.reason)) ??
    at('health', health === undefined ? undefined : healths()(health))
  )
}

const healths = once(() => word('HEALTHY', 'DRAINING', 'UNHEALTHY', 'UNKNOWN', 'ABSENT'))

function checkVerdicts(verdicts: readonly Verdict[], count: number): void {
  const path = `the strategy's answer`
  check(SUBJECT, path, verdicts, verdictsShape())
  if (verdicts.length === count) return
  refuse(SUBJECT, `the length of ${path}`, verdicts.length, `one verdict per endpoint, ${count}`)
}
