import { canonicalAddress } from '../../provider/address.js'
import { pause, type Clock } from '../../provider/clock.js'
import type {
  AddressTarget,
  DrainableProvider,
  MemberRef,
  PresentReading,
  Reading,
} from '../../provider/contract.js'
import { DrainableError, toDrainableError, wordsOf } from '../../provider/error.js'
import { formatRef, refKey } from '../../provider/member-ref.js'
import { quote } from '../../provider/quote.js'
import type { Why } from '../../provider/report.js'
import { canPass } from '../../core/calls/run/preparation.js'
import type { Target } from '../../core/calls/target.js'
import { select } from '../../core/calls/watch.js'
import { ASK_AGAIN } from '../combined/divide.js'
import type { RollSettings } from './options.js'

/** The target of a roll: a target of a drain, or several of them. */
export type RollTarget =
  | Target
  | readonly (MemberRef | AddressTarget | { readonly pool: string; readonly balancer?: string })[]

/** One server: all members with one address. */
export interface Server {
  readonly address: string | null
  readonly members: readonly PresentReading[]
}

type OneTarget = Exclude<Target, readonly MemberRef[]>

/** Splits the target of a roll: refs stay together, because one look finds them all. */
export function splitTarget(target: RollTarget, subject: string): readonly Target[] {
  if (!Array.isArray(target)) return [target as OneTarget]
  const list = target as readonly OneTarget[]
  if (list.length === 0) {
    throw new DrainableError(
      'INVALID_OPTIONS',
      `${subject}: target: expected at least one member, address or pool; a roll over nothing is a mistake`,
    )
  }
  const refs = list.filter((one): one is MemberRef => 'member' in Object(one))
  const rest = list.filter((one) => !('member' in Object(one)))
  return [...(refs.length === 0 ? [] : [refs]), ...rest]
}

/** How the servers of a roll are looked for. */
export interface Search {
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly grouping: RollSettings['grouping']
  readonly subject: string
  /** For how long a balancer that can't be read is asked again, in milliseconds. */
  readonly patience: number
  /** Told what it waits for. */
  readonly say: (why: readonly Why[]) => void
}

const NO_ANSWER = 'its servers are looked for, and the balancer has not answered yet'

/**
 * Finds the servers of a roll, in the order of the readings.
 *
 * @throws `NOT_FOUND` if a part of the target matches nothing; the balancer's own error
 */
export async function findServers(
  provider: DrainableProvider,
  targets: readonly Target[],
  { clock, signal, grouping, subject, patience, say }: Search,
): Promise<readonly Server[]> {
  const until = clock.now() + patience
  const unread = (text: string): void => {
    const hint = 'nothing was changed yet'
    say([{ code: 'unreadable', ref: { pool: '*', member: '*' }, text, hint }])
  }
  unread(NO_ANSWER)
  for (;;) {
    try {
      const looks = targets.map((target) => select(provider, target, { clock, signal }))
      const found = (await Promise.all(looks)).flat()
      const unique = new Map(found.map((reading) => [refKey(reading.ref), reading]))
      return groupServers([...unique.values()], grouping, subject)
    } catch (thrown) {
      signal.throwIfAborted()
      const error = toDrainableError(thrown, provider.name, subject)
      if (!canPass(error) || clock.now() + ASK_AGAIN > until) throw thrown
      unread(`its servers are looked for, and the balancer can't be read: ${error.message}`)
      await pause(clock, ASK_AGAIN, signal)
    }
  }
}

/** Groups members into servers. */
export function groupServers(
  readings: readonly Reading[],
  grouping: RollSettings['grouping'],
  subject: string,
): readonly Server[] {
  const groups = new Map<string, PresentReading[]>()
  for (const reading of readings) {
    if (!reading.present) continue
    const key = keyOf(reading, grouping, subject)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [reading])
    else group.push(reading)
  }
  return [...groups.values()].map((members) => toServer(members, subject))
}

function keyOf(
  reading: PresentReading,
  grouping: RollSettings['grouping'],
  subject: string,
): string {
  const alone = `ref ${refKey(reading.ref)}`
  if (grouping === 'ref') return alone
  if (grouping === 'address')
    return reading.address === undefined ? alone : `address ${canonicalAddress(reading.address)}`
  const { ref } = reading
  const refuse = (words: string, cause?: unknown): never => {
    throw new DrainableError('INVALID_OPTIONS', `${subject}: group: ${words}`, { ref, cause })
  }
  let said: unknown
  try {
    said = grouping(reading)
  } catch (error) {
    refuse(`your function failed for ${formatRef(ref)}: ${wordsOf(error)}`, error)
  }
  return typeof said === 'string'
    ? `group ${said}`
    : refuse(`expected a text for ${formatRef(ref)}, found ${typeof said}`)
}

/** @throws `INVALID_OPTIONS` if its members have different addresses: `act` gets only one */
function toServer(members: readonly PresentReading[], subject: string): Server {
  const known = new Map<string, PresentReading>()
  for (const member of members)
    if (member.address !== undefined) known.set(canonicalAddress(member.address), member)
  const [first, second] = known.values()
  if (first !== undefined && second !== undefined) {
    throw new DrainableError(
      'INVALID_OPTIONS',
      `${subject}: group: ${formatRef(first.ref)} (${quote(first.address ?? '')}) and ${formatRef(second.ref)} (${quote(second.address ?? '')}) would be one server with two addresses; group them by 'address'`,
      { ref: second.ref },
    )
  }
  return { address: first?.address ?? null, members }
}
