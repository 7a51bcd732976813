import { DrainableError } from '../../../provider/error.js'
import { quote } from '../../../provider/quote.js'
import type { JsonAssignment } from '../codec/json.js'
import type { HeldSets } from './sink.js'

/** What several proxies hold. */
export interface Agreement {
  readonly sets: readonly JsonAssignment[]
  /** By set that the proxies hold with different members: those that one of them shows as DRAINING. */
  readonly draining: ReadonlyMap<string, ReadonlySet<string>>
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
  proxies: readonly Pick<HeldSets, 'name' | 'sets'>[],
  own: ReadonlySet<string> = new Set<string>(),
): Agreement {
  const held = new Map<string, { readonly from: string; readonly set: JsonAssignment }[]>()
  for (const { name: from, sets = [] } of proxies) {
    for (const set of sets) {
      if (set.endpoints.length === 0) continue
      held.set(set.cluster, [...(held.get(set.cluster) ?? []), { from, set }])
    }
  }
  const agreed: JsonAssignment[] = []
  const draining = new Map<string, ReadonlySet<string>>()
  const differences: string[] = []
  for (const [cluster, all] of held) {
    const found = differencesIn(all)
    const sets = all.map(({ set }) => set)
    if (found.length === 0) agreed.push(...union(sets))
    else if (own.has(cluster)) {
      const endpoints = sets.flatMap((set) => set.endpoints)
      const drained = endpoints.filter(({ status }) => status === 'DRAINING')
      draining.set(cluster, new Set(drained.map(({ member = '' }) => member)))
    } else differences.push(...found)
  }
  if (differences.length > 0) throw disagreement(differences)
  return { sets: agreed, draining }
}

/**
 * What several proxies hold, set by set: each endpoint that any of them has, as the first has it, in the most cautious
 * state that any of them shows. Proxies of one control plane may well hold different sets: by locality, by what each needs
 * to know, or because one of them is behind.
 */
export function union(sets: readonly JsonAssignment[]): JsonAssignment[] {
  const found = new Map<string, JsonAssignment>()
  for (const set of sets) found.set(set.cluster, found.get(set.cluster)?.union(set) ?? set)
  return [...found.values()]
}

/** No proxy holds any set. */
export function nothingToAdopt(proxies: readonly HeldSets[]): DrainableError {
  const failed = proxies.find(({ error }) => error !== undefined)?.error
  if (failed !== undefined) return failed
  const [code, words] =
    proxies.length === 0
      ? ([
          'INVALID_OPTIONS',
          'envoy(): there is no proxy to adopt the endpoint sets from, give admin, or initial on the sink',
        ] as const)
      : ([
          'REJECTED',
          `${proxies.map(({ name }) => name).join(', ')}: no endpoint set to adopt, nothing is published: a fresh fleet needs initial on the sink`,
        ] as const)
  return new DrainableError(code, words, { provider: 'envoy' })
}

/** How the members of a set differ in several proxies, in words. Most hold the same, to the letter. */
function differencesIn(
  all: readonly { readonly from: string; readonly set: JsonAssignment }[],
): string[] {
  const [first, ...others] = all.map(({ from, set }) => ({ from, set, has: set.contents() }))
  return others.flatMap(({ from, set, has }) => {
    if (first === undefined || set.toText() === first.set.toText()) return []
    const name = `'${set.cluster}' has`
    const only = (member: string, on: string): string =>
      `${name} ${quote(member, 80)} only on ${on}`
    const mine = [...first.has].flatMap(([member, text]) => {
      const theirs = has.get(member)
      if (theirs === undefined) return [only(member, first.from)]
      if (theirs === text) return []
      return [
        `${name} ${quote(member, 80)} with another weight, priority, locality or metadata on ${first.from} and ${from}`,
      ]
    })
    const more = [...has.keys()].filter((member) => !first.has.has(member))
    return [...mine, ...more.map((member) => only(member, from))]
  })
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
