import { DrainableError } from '../../../provider/error.js'
import { quote } from '../../../provider/quote.js'
import type { JsonObject } from '../../../kit/json.js'
import { canonical } from '../codec/canonical.js'
import { keyOf, withoutKeys } from '../codec/proto-json.js'
import { clusterOf, entriesOf, union, type Entries, type Entry } from '../codec/union.js'

/** No proxy holds any set. */
export function nothingToAdopt(proxies: readonly string[]): DrainableError {
  return new DrainableError(
    'REJECTED',
    `${proxies.join(', ')}: no endpoint set to adopt, nothing is published: a fresh fleet needs initial on the sink`,
    { provider: 'envoy' },
  )
}

/** What several proxies hold. */
export interface Agreement {
  readonly sets: JsonObject[]
  /** By set that the proxies hold with different members: those that one of them shows as DRAINING. */
  readonly draining: ReadonlyMap<string, ReadonlySet<string>>
}

/** The sets of one proxy. */
export interface Dump {
  readonly name: string
  readonly sets: readonly JsonObject[]
}

/** Who holds a set, and what. */
interface Held {
  readonly from: string
  readonly set: JsonObject
  readonly entries: Entries
}

/** Differences that are named; the rest is counted. */
const NAMED = 6

/**
 * One list of sets from several proxies.
 *
 * Order means nothing, and neither does a set without endpoints: a proxy that has just started holds
 * one. Where only states differ, as a controller that died in mid-push leaves them, the more cautious
 * one is taken. Members that differ are refused, and listed; of a set in `own` they leave it out.
 */
export function agreed(
  dumps: readonly Dump[],
  own: ReadonlySet<string> = new Set<string>(),
): Agreement {
  const sets: JsonObject[] = []
  const draining = new Map<string, ReadonlySet<string>>()
  const differences: string[] = []
  for (const cluster of new Set(dumps.flatMap((dump) => dump.sets.map(clusterOf)))) {
    const [first, ...others] = holdersOf(cluster, dumps)
    if (first === undefined) continue
    const found = others.flatMap((other) => compared(cluster, first, other))
    if (found.length === 0) {
      const all = [first, ...others].map(({ set }) => [set])
      sets.push(...(others.length === 0 ? [first.set] : union(all)))
    } else if (own.has(cluster)) {
      const entries = [first, ...others].flatMap((held) => [...held.entries])
      const drained = entries.filter(([, { status }]) => status === 'DRAINING')
      draining.set(cluster, new Set(drained.map(([member]) => member)))
    } else differences.push(...found)
  }
  if (differences.length > 0) throw disagreement(differences)
  return { sets, draining }
}

/** Those that hold a set with endpoints. Most hold the same to the letter, and that is cheap to see: once is enough. */
function holdersOf(cluster: string, dumps: readonly Dump[]): Held[] {
  const seen = new Set<string>()
  return dumps.flatMap(({ name, sets }) =>
    sets.flatMap((set) => {
      if (clusterOf(set) !== cluster) return []
      const text = JSON.stringify(set)
      if (seen.has(text)) return []
      seen.add(text)
      const entries = entriesOf(set)
      return entries.size === 0 ? [] : [{ from: name, set, entries }]
    }),
  )
}

/** How the members of a set differ in two proxies, in words. */
function compared(cluster: string, one: Held, other: Held): string[] {
  const words: string[] = []
  for (const [here, there] of [
    [one, other],
    [other, one],
  ] as const) {
    for (const member of here.entries.keys()) {
      if (there.entries.has(member)) continue
      words.push(`'${cluster}' has ${quote(member, 80)} only on ${here.from}`)
    }
  }
  for (const [member, mine] of one.entries) {
    const theirs = other.entries.get(member)
    if (theirs === undefined || textOf(theirs) === textOf(mine)) continue
    words.push(
      `'${cluster}' has ${quote(member, 80)} with another weight, priority, locality or metadata on ${one.from} and ${other.from}`,
    )
  }
  return words
}

/** Everything but the status, and the place. */
function textOf({ group, endpoint }: Entry): string {
  return canonical([group, withoutKeys(endpoint, keyOf(endpoint, 'health_status'))])
}

function disagreement(differences: readonly string[]): DrainableError {
  const named = differences.slice(0, NAMED).join('; ')
  const more = differences.length > NAMED ? `; and ${differences.length - NAMED} more` : ''
  return new DrainableError(
    'CONFLICT',
    `the proxies hold different endpoints, nothing is adopted: ${named}${more}; bring them together first, or give initial on the sink`,
    { provider: 'envoy' },
  )
}
