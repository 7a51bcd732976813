import { addressTypeOf } from './address.js'
import {
  A_PORT,
  AN_AMOUNT,
  checkFlag,
  checkOptions,
  checkText,
  checkTexts,
  checkWord,
  isAmount,
  isObject,
  isPort,
  refuse,
} from './check.js'
import { DrainableError } from '../provider/error.js'
import { normaliseConditions, tierOf, type Tier } from './slices/conditions.js'
import type { Decision, EndpointHealth } from './decision.js'
import type { EndpointInput, Tri } from './endpoint-input.js'
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
  if (!Array.isArray(endpoints)) refuseEndpoints(endpoints)
  const { unready = 'drain' } = options
  const context: StrategyInput = { ...options.context, unready }
  const decisions = new Array<Decision>(endpoints.length)
  const sets = new PortSets()
  const seen: (Seen | undefined)[] = []
  for (let i = 0; i < endpoints.length; i++) {
    const endpoint = checkEndpoint(endpoints[i], i)
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
  checkOptions(SUBJECT, options, ['strategy', 'unready', 'context'])
  const { strategy = 'serve-terminating-fallback', context = {} } = options
  checkWord(SUBJECT, 'unready', options.unready, ['drain', 'exclude'])
  checkContext(context)
  if (typeof strategy === 'function') return strategy
  checkWord(SUBJECT, 'strategy', strategy, Object.keys(strategies))
  return strategies[strategy]
}

function checkContext(context: StrategyContext): void {
  if (!isObject(context)) refuse(SUBJECT, 'context', context, 'an object')
  checkOptions(`${SUBJECT}: context`, context, [
    'policy',
    'nodeName',
    'zone',
    'topology',
    'persistentSession',
    'sendUnhealthy',
  ])
  checkWord(SUBJECT, 'context.policy', context.policy, ['cluster', 'local'])
  checkText(SUBJECT, 'context.nodeName', context.nodeName)
  checkText(SUBJECT, 'context.zone', context.zone)
  checkFlag(SUBJECT, 'context.topology', context.topology)
  checkFlag(SUBJECT, 'context.persistentSession', context.persistentSession)
  checkFlag(SUBJECT, 'context.sendUnhealthy', context.sendUnhealthy)
  if (context.policy === 'local' && typeof context.nodeName !== 'string') {
    refuse(SUBJECT, 'context.nodeName', context.nodeName, `a node's name with the policy 'local'`)
  }
}

function refuseEndpoints(found: unknown): never {
  refuseObject('endpoints', found)
  refuse(SUBJECT, 'endpoints', found, 'a list of endpoints')
}

/**
 * A whole object of Kubernetes where an endpoint belongs. The older one has addresses and no conditions, so it can't say which
 * of them are being drained.
 */
function refuseObject(path: string, found: unknown): void {
  if (!isObject(found)) return
  const old = 'is an Endpoints object, which has no conditions: give those of its EndpointSlices'
  const slice = 'is an EndpointSlice: give what mergeSlices() makes of all slices of the Service'
  const words = 'subsets' in found ? old : Array.isArray(found['endpoints']) ? slice : undefined
  if (words !== undefined)
    throw new DrainableError('INVALID_OPTIONS', `${SUBJECT}: ${path} ${words}`)
}

/** Written for a hundred thousand endpoints: a path becomes text only where something is wrong. */
// eslint-disable-next-line complexity -- one check a field; a list of ten thousand is checked for every set
function checkEndpoint(one: unknown, i: number): EndpointInput {
  if (!isObject(one)) refuse(SUBJECT, `endpoints[${i}]`, one, 'an endpoint')
  const { addresses, conditions, weight } = one
  if (!Array.isArray(addresses)) {
    refuseObject(`endpoints[${i}]`, one)
    refuse(SUBJECT, `endpoints[${i}].addresses`, addresses, 'a list of addresses')
  }
  if (addresses.length > 0 && typeof addresses[0] !== 'string') {
    checkTexts(SUBJECT, `endpoints[${i}].addresses`, addresses)
  }
  if (conditions !== undefined && conditions !== null) {
    checkConditions(conditions, `endpoints[${i}].conditions`)
  }
  if (weight !== undefined && !isAmount(weight)) {
    refuse(SUBJECT, `endpoints[${i}].weight`, weight, AN_AMOUNT)
  }
  if (one.port !== undefined && !isPort(one.port)) {
    refuse(SUBJECT, `endpoints[${i}].port`, one.port, A_PORT)
  }
  if (one.intent !== undefined && one.intent !== 'soft' && one.intent !== 'hard') {
    checkWord(SUBJECT, `endpoints[${i}].intent`, one.intent, ['none', 'soft', 'hard'])
  }
  if (one.portName !== undefined && typeof one.portName !== 'string') {
    refuse(SUBJECT, `endpoints[${i}].portName`, one.portName, 'a text')
  }
  if (one.note !== undefined && typeof one.note !== 'string') {
    refuse(SUBJECT, `endpoints[${i}].note`, one.note, 'a text')
  }
  if (one.addressType !== undefined) {
    checkWord(SUBJECT, `endpoints[${i}].addressType`, one.addressType, FAMILIES)
  }
  if (one.hints !== undefined && one.hints !== null) {
    if (!isObject(one.hints)) refuse(SUBJECT, `endpoints[${i}].hints`, one.hints, 'an object')
    checkTexts(SUBJECT, `endpoints[${i}].hints.forZones`, one.hints.forZones)
    checkTexts(SUBJECT, `endpoints[${i}].hints.forNodes`, one.hints.forNodes)
  }
  return one as unknown as EndpointInput
}

const FAMILIES = ['IPv4', 'IPv6', 'FQDN']

function checkConditions(conditions: unknown, path: string): void {
  if (!isObject(conditions)) refuse(SUBJECT, path, conditions, 'an object')
  const { ready, serving, terminating } = conditions
  if (!isTri(ready)) refuse(SUBJECT, `${path}.ready`, ready, TRI)
  if (!isTri(serving)) refuse(SUBJECT, `${path}.serving`, serving, TRI)
  if (!isTri(terminating)) refuse(SUBJECT, `${path}.terminating`, terminating, TRI)
}

const HEALTHS = ['HEALTHY', 'DRAINING', 'UNHEALTHY', 'UNKNOWN', 'ABSENT'] as const

const TRI = 'true, false or null'

function isTri(value: unknown): boolean {
  return value === undefined || value === null || typeof value === 'boolean'
}

function checkVerdicts(verdicts: unknown, count: number): void {
  if (!Array.isArray(verdicts)) {
    refuse(SUBJECT, `the strategy's answer`, verdicts, 'a list of verdicts')
  }
  if (verdicts.length !== count) {
    refuse(
      SUBJECT,
      `the length of the strategy's answer`,
      verdicts.length,
      `one verdict per endpoint, ${count}`,
    )
  }
  for (let i = 0; i < verdicts.length; i++) {
    const verdict: unknown = verdicts[i]
    if (!isObject(verdict)) refuse(SUBJECT, `the strategy's answer[${i}]`, verdict, 'a verdict')
    if (verdict.action !== 'serve' && verdict.action !== 'drain' && verdict.action !== 'exclude') {
      refuse(
        SUBJECT,
        `the strategy's answer[${i}].action`,
        verdict.action,
        `'serve', 'drain' or 'exclude'`,
      )
    }
    if (typeof verdict.reason !== 'string') {
      refuse(SUBJECT, `the strategy's answer[${i}].reason`, verdict.reason, 'a text')
    }
    if (verdict.health !== undefined)
      checkWord(SUBJECT, `the strategy's answer[${i}].health`, verdict.health, HEALTHS)
  }
}
