import { addressTypeOf } from './address.js'
import {
  checkFlag,
  checkOptions,
  checkText,
  checkTexts,
  checkWord,
  isObject,
  refuse,
} from './check.js'
import { normaliseConditions, tierOf } from './conditions.js'
import type { Decision, EndpointHealth } from './decision.js'
import type { EndpointInput } from './endpoint-input.js'
import { strategies, type StrategyName } from './strategies.js'
import type { EndpointView, Strategy, StrategyContext, StrategyInput, Verdict } from './strategy.js'

/** How a set of endpoints is judged. */
export interface MapOptions {
  /** A name, or a function of your own. @default 'serve-terminating-fallback' */
  readonly strategy?: StrategyName | Strategy
  /**
   * What becomes of endpoints that do not answer and are still in the set; only the default
   * strategy and operator drains ask. Excluded ones are taken out of the balancer once idle.
   * @default 'drain'
   */
  readonly unready?: 'drain' | 'exclude'
  /** What some named strategies need to know. */
  readonly context?: StrategyContext
}

const SUBJECT = 'mapEndpoints()'

/**
 * Decides for each endpoint of a set whether it serves, drains or is left out: one decision per
 * endpoint, in order. Pure: no clock, no memory, the input is not changed.
 *
 * The set is one port name: endpoints of `http` and `metrics` are judged apart.
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
  checkEndpoints(endpoints)
  const { unready = 'drain' } = options
  const context: StrategyInput = { ...options.context, unready }
  const decisions = new Array<Decision>(endpoints.length)
  for (const set of byPortName(endpoints)) {
    const views: EndpointView[] = []
    const places: number[] = []
    for (const i of set) {
      const endpoint = endpoints[i]
      if (endpoint === undefined) continue
      const verdict = beforeStrategy(endpoint, unready)
      if (verdict !== undefined) decisions[i] = decide(endpoint, verdict)
      else {
        views.push(viewOf(endpoint))
        places.push(i)
      }
    }
    const verdicts = strategy(views, context)
    checkVerdicts(verdicts, views.length)
    for (const [n, view] of views.entries()) {
      const [place, verdict] = [places[n], verdicts[n]]
      if (place === undefined || verdict === undefined) continue
      decisions[place] = decide(view.endpoint, verdict)
    }
  }
  return decisions
}

/** The places of each port name's endpoints, in order; nearly always there is only one name. */
function byPortName(endpoints: readonly EndpointInput[]): Iterable<readonly number[]> {
  const sets = new Map<string, number[]>()
  for (const [i, { portName = '' }] of endpoints.entries()) {
    const set = sets.get(portName)
    if (set) set.push(i)
    else sets.set(portName, [i])
  }
  return sets.values()
}

/** What is decided without the strategy: it is never a candidate. */
function beforeStrategy(
  endpoint: EndpointInput,
  unready: 'drain' | 'exclude',
): Verdict | undefined {
  if (endpoint.addresses[0] === undefined || endpoint.addresses[0] === '') return NO_ADDRESS
  const { weight = 1, intent } = endpoint
  if (intent !== 'hard' && weight > 0) return undefined
  const reason =
    intent === 'hard' ? 'drained by its operator' : `drained by its operator: weight ${weight}`
  const answers = tierOf(normaliseConditions(endpoint.conditions)) <= 3
  return { action: answers ? 'drain' : unready, reason }
}

const NO_ADDRESS: Verdict = { action: 'exclude', reason: 'it has no address' }

function viewOf(endpoint: EndpointInput): EndpointView {
  const { conditions } = endpoint
  const normal = normaliseConditions(conditions)
  const tier = tierOf(normal)
  if (tier === 1 && endpoint.intent === 'soft') {
    return { endpoint, said: LEAVING, ...LEAVING, tier: 2 }
  }
  const { ready, serving, terminating } = normal
  const said = {
    ready: conditions?.ready ?? undefined,
    serving: conditions?.serving ?? undefined,
    terminating: conditions?.terminating ?? undefined,
  }
  return { endpoint, said, ready, serving, terminating, tier }
}

const LEAVING = { ready: false, serving: true, terminating: true } as const

function decide(endpoint: EndpointInput, verdict: Verdict): Decision {
  const { action } = verdict
  const address = endpoint.addresses[0] ?? ''
  const serves = action === 'serve'
  const decision = {
    address,
    addressType: endpoint.addressType ?? addressTypeOf(address),
    action,
    reason: endpoint.note === undefined ? verdict.reason : `${verdict.reason} (${endpoint.note})`,
    health: action === 'exclude' ? 'ABSENT' : (verdict.health ?? HEALTH[action]),
    weight: serves ? (endpoint.weight ?? 1) : 0,
    ifAbsent: serves && endpoint.ifAbsent !== 'skip' ? 'add' : 'skip',
    serving: tierOf(normaliseConditions(endpoint.conditions)) <= 3,
    endpoint,
  } as const
  return endpoint.port === undefined ? decision : { ...decision, port: endpoint.port }
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

function checkEndpoints(endpoints: readonly EndpointInput[]): void {
  if (!Array.isArray(endpoints)) refuse(SUBJECT, 'endpoints', endpoints, 'a list of endpoints')
  for (let i = 0; i < endpoints.length; i++) checkEndpoint(endpoints[i], i)
}

/** Written for a hundred thousand endpoints: a path becomes text only where something is wrong. */
function checkEndpoint(one: unknown, i: number): void {
  if (!isObject(one)) refuse(SUBJECT, `endpoints[${i}]`, one, 'an endpoint')
  const { addresses, conditions, weight } = one
  if (!Array.isArray(addresses)) {
    refuse(SUBJECT, `endpoints[${i}].addresses`, addresses, 'a list of addresses')
  }
  if (addresses.length > 0 && typeof addresses[0] !== 'string') {
    checkTexts(SUBJECT, `endpoints[${i}].addresses`, addresses)
  }
  if (conditions !== undefined && conditions !== null) {
    checkConditions(conditions, `endpoints[${i}].conditions`)
  }
  if (weight !== undefined && typeof weight !== 'number') {
    refuse(SUBJECT, `endpoints[${i}].weight`, weight, 'a number')
  }
  if (one.port !== undefined && typeof one.port !== 'number') {
    refuse(SUBJECT, `endpoints[${i}].port`, one.port, 'a number')
  }
  if (one.intent !== undefined) {
    checkWord(SUBJECT, `endpoints[${i}].intent`, one.intent, ['none', 'soft', 'hard'])
  }
  if (one.portName !== undefined && typeof one.portName !== 'string') {
    refuse(SUBJECT, `endpoints[${i}].portName`, one.portName, 'a text')
  }
  if (one.note !== undefined && typeof one.note !== 'string') {
    refuse(SUBJECT, `endpoints[${i}].note`, one.note, 'a text')
  }
  if (one.hints !== undefined && one.hints !== null) {
    if (!isObject(one.hints)) refuse(SUBJECT, `endpoints[${i}].hints`, one.hints, 'an object')
    checkTexts(SUBJECT, `endpoints[${i}].hints.forZones`, one.hints.forZones)
    checkTexts(SUBJECT, `endpoints[${i}].hints.forNodes`, one.hints.forNodes)
  }
}

function checkConditions(conditions: unknown, path: string): void {
  if (!isObject(conditions)) refuse(SUBJECT, path, conditions, 'an object')
  const { ready, serving, terminating } = conditions
  if (!isTri(ready)) refuse(SUBJECT, `${path}.ready`, ready, TRI)
  if (!isTri(serving)) refuse(SUBJECT, `${path}.serving`, serving, TRI)
  if (!isTri(terminating)) refuse(SUBJECT, `${path}.terminating`, terminating, TRI)
}

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
  }
}
