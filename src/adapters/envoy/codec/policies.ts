/**
 * How a cluster of `/config_dump` balances: by `lb_policy`, or by `load_balancing_policy`, whose policies hand on to others.
 *
 * Each policy is an `Any`. One that is written as a `TypedStruct` (`xds.type.v3`, `udpa.type.v1`) names its own type in
 * `type_url`, and its fields, in snake_case or camelCase as their author wrote them, stand in `value`. Envoy 1.39.3, 1.40.0.
 */
import { isObject, type JsonObject, type JsonValue } from '../../../kit/json.js'
import { keyOf } from './proto-json.js'

/** `lb_subset_config`, or the policy `subset`. */
export interface SubsetRules {
  /** Each selector makes a subset of the hosts that have the same values of its keys. */
  readonly selectors: readonly (readonly string[])[]
  /** Where requests without a subset go, where that is a subset too. */
  readonly fallback: JsonObject | undefined
  /** A list of values is any of them. */
  readonly listAsAny: boolean
}

/** One policy: the type of its message, and its fields. */
export interface Policy {
  readonly type: string
  readonly config: JsonValue
}

/** Deeper than any policy in a policy goes. */
const DEEPEST = 16

/** A policy and all those that it hands on to, whatever their fields are called. */
export function policiesOf(value: JsonValue, depth = 0): readonly Policy[] {
  if (depth > DEEPEST) return []
  if (Array.isArray(value.value)) return value.list().flatMap((item) => policiesOf(item, depth + 1))
  if (!isObject(value.value)) return []
  const inner = value.fields().flatMap(([, item]) => policiesOf(item, depth + 1))
  return value.at('@type').present ? [toPolicy(value), ...inner] : inner
}

function toPolicy(value: JsonValue): Policy {
  const type = value.at('@type').text() ?? ''
  const isStruct = type.endsWith('.TypedStruct')
  return isStruct
    ? { type: at(value, 'type_url').text() ?? '', config: value.at('value') }
    : { type, config: value }
}

/** A field, however its author wrote its name. */
function at(value: JsonValue, name: string): JsonValue {
  return isObject(value.value) ? value.at(keyOf(value.value, name)) : value.at(name)
}

/** `lb_policy` of those that know `fail_traffic_on_panic`. The default of the enum is left out. */
const FAILING = new Set(['ROUND_ROBIN', 'LEAST_REQUEST', 'RANDOM'])
const FAILING_TYPES = [
  '.round_robin.v3.RoundRobin',
  '.least_request.v3.LeastRequest',
  '.random.v3.Random',
]

/**
 * Whether a panic answers 503 instead of using every host (`fail_traffic_on_panic`).
 *
 * Ring hash and maglev take the field and do not act on it: in a panic they send traffic to drained hosts all the same. Under
 * `load_balancing_policy` each policy has the field in its own `locality_lb_config`. Envoy 1.39.3, 1.40.0.
 */
export function failsOnPanic(cluster: JsonValue): boolean {
  const chosen = cluster.at('load_balancing_policy')
  if (chosen.present) return allFail(chosen, 0)
  const isObeyed = FAILING.has(cluster.at('lb_policy').word() ?? 'ROUND_ROBIN')
  return isObeyed && isFailing(cluster.at('common_lb_config'))
}

/** Envoy takes the first of a list that it was built with: so all of them must. */
function allFail(list: JsonValue, depth: number): boolean {
  const policies = list.at('policies').rows()
  if (depth > DEEPEST || policies.length === 0) return false
  return policies.every((entry) => {
    const { type, config } = toPolicy(entry.at('typed_extension_config').at('typed_config'))
    if (type.endsWith('.subset.v3.Subset'))
      return allFail(at(config, 'subset_lb_policy'), depth + 1)
    const isObeyed = FAILING_TYPES.some((known) => type.endsWith(known))
    return isObeyed && isFailing(at(config, 'locality_lb_config'))
  })
}

function isFailing(config: JsonValue): boolean {
  return at(at(config, 'zone_aware_lb_config'), 'fail_traffic_on_panic').flag() === true
}

/** How the hosts of a cluster are divided into subsets; undefined: they are not. */
export function subsetsOf(found: readonly JsonValue[]): SubsetRules | undefined {
  const rules = found.filter(({ present }) => present)
  const selectorsOf = (rule: JsonValue): readonly JsonValue[] => at(rule, 'subset_selectors').rows()
  const selectors = rules.flatMap((rule) =>
    selectorsOf(rule).flatMap((selector) => {
      const keys = (name: string): string[] =>
        at(selector, name)
          .list()
          .map((key) => key.text() ?? '')
      const narrower = keys('fallback_keys_subset')
      return narrower.length === 0 ? [keys('keys')] : [keys('keys'), narrower]
    }),
  )
  const fallback = rules
    .filter((rule) =>
      [rule, ...selectorsOf(rule)].some(
        (one) => at(one, 'fallback_policy').word() === 'DEFAULT_SUBSET',
      ),
    )
    .map((rule) => at(rule, 'default_subset').object())
  if (selectors.length === 0 && fallback.length === 0) return undefined
  return {
    selectors,
    fallback: fallback[0],
    listAsAny: rules.some((rule) => at(rule, 'list_as_any').flag() === true),
  }
}
