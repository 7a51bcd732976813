import { DrainableError } from '../../../provider/error.js'
import { quote } from '../../../provider/quote.js'
import type { JsonObject } from '../../../kit/json.js'
import { canonical } from '../codec/canonical.js'
import { field, keyOf, withoutKeys } from '../codec/proto-json.js'
import { CAUTION, nameOf, objectsIn } from '../codec/raw-sets.js'
import { toEdsStatus, type EdsStatus } from '../codec/status.js'

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

/** One endpoint of a dump, by what it means. */
interface Member {
  readonly name: string
  readonly status: EdsStatus
  /** Everything but its status and its place. */
  readonly text: string
}

interface Held {
  readonly from: string
  readonly set: JsonObject
  readonly members: ReadonlyMap<string, Member>
  /** By member, where others have another one. */
  readonly statuses: Map<string, EdsStatus>
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
  const held = new Map<string, Held>()
  const differences: string[] = []
  const apart = new Set<string>()
  for (const { name, sets } of dumps) {
    for (const set of sets) {
      const named = field(set, 'cluster_name')
      const cluster = typeof named === 'string' ? named : ''
      const known = held.get(cluster)
      // Most are the same to the letter, and that is cheap to see.
      if (known !== undefined && JSON.stringify(known.set) === JSON.stringify(set)) continue
      const members = membersOf(set)
      if (members.size === 0) continue
      if (known === undefined) held.set(cluster, { from: name, set, members, statuses: new Map() })
      else {
        const found = compared(cluster, known, name, members)
        if (!own.has(cluster)) differences.push(...found)
        else if (found.length > 0) apart.add(cluster)
      }
    }
  }
  if (differences.length > 0) throw disagreement(differences)
  const sets = [...held].flatMap(([cluster, { set, statuses }]) =>
    apart.has(cluster) ? [] : [withStatuses(set, statuses)],
  )
  return {
    sets,
    draining: new Map([...apart].map((cluster) => [cluster, drainingIn(cluster, dumps)])),
  }
}

/** Members of a set that any proxy holds as DRAINING. */
function drainingIn(cluster: string, dumps: readonly Dump[]): ReadonlySet<string> {
  const members = dumps
    .flatMap(({ sets }) => sets)
    .filter((set) => field(set, 'cluster_name') === cluster)
    .flatMap((set) => [...membersOf(set).values()])
  return new Set(members.flatMap(({ name, status }) => (status === 'DRAINING' ? [name] : [])))
}

/** Takes in what another proxy holds. Returns how its members differ, in words. */
function compared(
  cluster: string,
  known: Held,
  name: string,
  members: ReadonlyMap<string, Member>,
): string[] {
  const words: string[] = []
  const only = (where: string, list: ReadonlyMap<string, Member>, other: typeof list): void => {
    for (const member of list.keys()) {
      if (!other.has(member)) words.push(`'${cluster}' has ${quote(member, 80)} only on ${where}`)
    }
  }
  only(known.from, known.members, members)
  only(name, members, known.members)
  for (const [member, mine] of known.members) {
    const theirs = members.get(member)
    if (theirs === undefined) continue
    if (theirs.text !== mine.text) {
      words.push(
        `'${cluster}' has ${quote(member, 80)} with another weight, priority, locality or metadata on ${known.from} and ${name}`,
      )
    }
    const status = known.statuses.get(member) ?? mine.status
    if (CAUTION.indexOf(theirs.status) > CAUTION.indexOf(status)) {
      known.statuses.set(member, theirs.status)
    }
  }
  return words
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

function membersOf(set: JsonObject): Map<string, Member> {
  const members = new Map<string, Member>()
  for (const { group, endpoint } of endpointsOf(set)) {
    const name = nameOf(endpoint)
    const status = field(endpoint, 'health_status')
    const known = typeof status === 'string' || typeof status === 'number' ? status : 'UNKNOWN'
    const text = canonical([
      withoutKeys(group, keyOf(group, 'lb_endpoints')),
      withoutKeys(endpoint, keyOf(endpoint, 'health_status')),
    ])
    members.set(name, { name, status: toEdsStatus(known) ?? 'UNKNOWN', text })
  }
  return members
}

function endpointsOf(set: JsonObject): { group: JsonObject; endpoint: JsonObject }[] {
  return objectsIn(set, 'endpoints').flatMap((group) =>
    objectsIn(group, 'lb_endpoints').map((endpoint) => ({ group, endpoint })),
  )
}

function withStatuses(set: JsonObject, statuses: ReadonlyMap<string, EdsStatus>): JsonObject {
  if (statuses.size === 0) return set
  const groups = objectsIn(set, 'endpoints').map((group) => ({
    ...group,
    [keyOf(group, 'lb_endpoints')]: objectsIn(group, 'lb_endpoints').map((endpoint) => {
      const status = statuses.get(nameOf(endpoint))
      if (status === undefined) return endpoint
      return { ...endpoint, [keyOf(endpoint, 'health_status')]: status }
    }),
  }))
  return { ...set, [keyOf(set, 'endpoints')]: groups }
}
