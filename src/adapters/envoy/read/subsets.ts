import type { JsonObject } from '../../../kit/json.js'
import type { Json } from '../../../provider/contract.js'
import type { Endpoint } from '../codec/assignment.js'
import { canonical } from '../codec/proto-json.js'
import type { SubsetRules } from '../codec/policies.js'

/** Some hosts of a cluster that balance, and panic, by themselves. */
export interface Subset {
  /** Its labels in words: `version=2, stage=prod`. */
  readonly name: string
  readonly members: ReadonlySet<string>
}

/**
 * The subsets of an endpoint set by name, for each way its cluster divides it.
 *
 * Envoy makes a subset for each combination of values of a selector's keys, of the hosts that have all of
 * the keys. Where its last host is not healthy, the subset panics alone: its requests go to the drained
 * host although the cluster has healthy ones. Envoy 1.39.3, 1.40.0.
 */
export function subsetsOf(endpoints: readonly Endpoint[], rules: SubsetRules): readonly Subset[] {
  const subsets = new Map<string, Set<string>>()
  const put = (name: string, member: string): void => {
    const members = subsets.get(name) ?? new Set()
    subsets.set(name, members.add(member))
  }
  for (const { member, labels } of endpoints) {
    if (member === undefined) continue
    for (const keys of rules.selectors) {
      for (const name of namesOf(keys, labels ?? {}, rules.listAsAny)) put(name, member)
    }
    if (rules.fallback !== undefined && matches(labels ?? {}, rules.fallback, rules.listAsAny)) {
      put('default_subset', member)
    }
  }
  return [...subsets].map(([name, members]) => ({ name, members }))
}

/** More combinations than any configuration has. */
const MOST = 64

function namesOf(keys: readonly string[], labels: JsonObject, listAsAny: boolean): string[] {
  let names = ['']
  for (const key of [...new Set(keys)].sort()) {
    const values = valuesOf(labels, key, listAsAny)
    names = names
      .flatMap((name) => values.map((value) => `${name}${name === '' ? '' : ', '}${key}=${value}`))
      .slice(0, MOST)
  }
  return keys.length === 0 ? [] : names
}

function matches(labels: JsonObject, wanted: JsonObject, listAsAny: boolean): boolean {
  return Object.entries(wanted).every(([key, value]) =>
    valuesOf(labels, key, listAsAny).includes(textOf(value)),
  )
}

function valuesOf(labels: JsonObject, key: string, listAsAny: boolean): string[] {
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined
  if (value === undefined) return []
  if (listAsAny && Array.isArray(value)) return (value as readonly Json[]).map(textOf)
  return [textOf(value)]
}

/** As a label is shown. The text `1` and the number 1 are two labels to Envoy, so that one is shown in quotes. */
function textOf(value: Json): string {
  return typeof value === 'string' && !isJson(value) ? value : canonical(value)
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
