import { hintsOfAgent, nameOfAgent } from '../../../kit/haproxy/agents.js'
import { isObject } from '../../../kit/json.js'
import { formatSocket } from '../../../provider/address.js'
import type {
  AdminState,
  Health,
  Json,
  MemberRef,
  PoolReading,
} from '../../../provider/contract.js'
import { marksOf } from '../codec/configuration.js'
import type { Marks } from '../codec/raw.js'
import { nameOf, type ProcessInfo } from '../codec/replies.js'
import type { Configured } from './configured.js'
import type { Settings } from '../options.js'
import type { Found, RuntimeView } from './read.js'
import { healthOf, held, isUnresolved, serving, splitAddress, type Verdict } from './state.js'

/**
 * Who a member is: address and port. HAProxy's own id is left out, because ids move with a reload. The identity of a
 * server whose name does not resolve is empty.
 */
export interface Identified {
  readonly identity: string
  readonly address: string
  /** Undefined where neither source tells it. */
  readonly port?: number
}

/** Where a server is, as far as it has an address, and who it is. */
export function placeOf(found: Found): Pick<Identified, 'identity'> & Partial<Identified> {
  const who = identify(found)
  return isNoAddress(who.address) ? { identity: who.identity } : who
}

/** Who the server is that was found. */
export function identify(found: Found): Identified {
  const { address, port } = addressOf(found)
  // A UNIX socket is `-` too, and has no port.
  if (isNoAddress(address) && (isUnresolved(found.row.status) || (port ?? 0) !== 0))
    return { identity: '', address }
  if (port === undefined) return { identity: address, address }
  return { identity: formatSocket(address, port), address, port }
}

/** By the list of servers, where it was asked, and the statistics. */
function addressOf({ server, row: { address = '' } }: Found): Omit<Identified, 'identity'> {
  const told = splitAddress(address) ?? { address }
  return { ...told, ...server }
}

function isNoAddress(text: string): boolean {
  return text === '-' || text === ''
}

/** The weight it was given, as far as this API says it. */
export function weightOf({ server, row }: Found): number {
  return server?.weight ?? row.weight
}

/** Whether it would get new, non-persistent work now. */
export function serves(found: Found, pool: ReadonlyMap<string, Found> | undefined): boolean {
  if (!usable(found)) return false
  return !found.row.backup || ![...(pool?.values() ?? [])].some((f) => usable(f) && !f.row.backup)
}

/**
 * What HAProxy's checks say of it. No check runs before an inherited maintenance ends (of its name, or of the server
 * that it tracks), so none is waited for.
 */
export function healthOfMember(found: Found, config: Configured): Health {
  const { own, inherited, hidden } = found.verdict
  if (inherited === 'maint' && own !== 'maint' && hidden !== true) return 'unchecked'
  const health = healthOf(found.row)
  // Under maint HAProxy does not tell whether there is a check.
  const { check = found.row.agent } = found.row
  const isTold = config.checked !== false || check !== undefined
  return health === 'unknown' && !isTold ? 'unchecked' : health
}

/** What sets its state beside the clients of HAProxy. */
export function setterOf({ row: { agent }, verdict }: Found): string | undefined {
  return verdict.setBy ?? (agent && nameOfAgent(agent))
}

/** How many of a backend would get new work. Backup servers do only when no other is left. */
export function toPoolReading(pool: string, view: RuntimeView): PoolReading {
  const members = view.pools.get(pool)
  const all = [...(members?.values() ?? [])]
  const spill = all.some((found) => usable(found) && found.row.backup)
  return {
    pool,
    serving: all.filter((found) => serves(found, members)).length,
    total: all.length,
    whenNone: spill ? 'spill' : 'refuse',
  }
}

/** Every server of a view, as refs. */
export function everyMember(view: RuntimeView): MemberRef[] {
  return [...view.pools].flatMap(([pool, members]) =>
    [...members.keys()].map((member) => ({ pool, member })),
  )
}

/** With the state of each. */
export function everyOwn({ pools }: RuntimeView): { ref: MemberRef; own: Verdict['own'] }[] {
  return [...pools.values()].flatMap((members) =>
    [...members.values()].map(({ row, verdict }) => ({ ref: row, own: verdict.own })),
  )
}

/** What restoring will need: the weight, and the configured line's marks where durable drains change them. */
export interface Native {
  readonly weight: number
  /** The state it was held in. @default ready */
  readonly own?: AdminState
  /** Its state at run time, where it was held by its weight alone. */
  readonly runs?: 'ready'
  readonly configured?: Marks
  /** The process in which it was found, where durable drains write marks. */
  readonly process?: string
}

/**
 * What the file makes of a server at the next reload. Weight 0 is the durable form of a drain; a line that
 * is only `disabled` is no mark of ours, and says something only where it can be taken back.
 */
export function storedHold(config: Configured, durable: boolean): 'drain' | 'maint' | undefined {
  if (config.weight !== 0 && !durable) return undefined
  if (config.maintenance === 'enabled') return 'maint'
  return config.weight === 0 ? 'drain' : undefined
}

/** The native part of a reading. */
export function toNative(
  found: Found,
  config: Configured,
  durable: boolean,
  followers: readonly MemberRef[],
  info: ProcessInfo,
): Json {
  const own = held(found.verdict, found.row)
  const stored = durable ? undefined : storedHold(config, durable)
  const native = {
    weight: weightOf(found),
    ...(own === 'ready' || own === 'unknown' ? {} : { own }),
    ...(own === found.verdict.own ? {} : { runs: 'ready' }),
    ...(stored === undefined ? {} : { stored }),
    ...(followers.length === 0
      ? {}
      : { followers: followers.map(({ pool, member }) => ({ pool, member })) }),
  }
  if (!durable || config.place !== 'line') return native
  const configured = { weight: config.weight, maintenance: config.maintenance }
  return { ...native, configured, process: nameOf(info) }
}

/** The native part as it comes back in a restore, from us or out of a ticket. */
export function readNative(native: Json | undefined): Native | undefined {
  if (!isObject(native) || typeof native['weight'] !== 'number') return undefined
  const { configured, own, process } = native
  const read: Native = {
    weight: native['weight'],
    ...(own === 'drain' || own === 'maint' ? { own } : {}),
    ...(native['runs'] === 'ready' ? { runs: 'ready' } : {}),
    ...(typeof process === 'string' ? { process } : {}),
  }
  return isObject(configured) ? { ...read, configured: marksOf(configured) } : read
}

/** What a person who asks why it is not idle should know. */

export function hintsOf(found: Found, config: Configured, settings: Settings): readonly string[] {
  const { own, doubt } = found.verdict
  const hints: string[] = []
  if (doubt !== undefined) hints.push(doubt)
  if (found.row.agent !== undefined) hints.push(...hintsOfAgent(found.row.agent))
  const marks = wordsOfMarks(config)
  if (found.row.weight === 0) {
    const where = config.weight === 0 ? ' in the configuration' : ''
    hints.push(`weight 0${where} keeps it out of balancing`)
  } else if (own === 'ready' && marks !== '') {
    hints.push(`the configuration has ${marks} for it: the next reload takes it out`)
  } else if (settings.durable && config.place === 'line' && own !== 'ready' && marks === '') {
    hints.push('the configuration says nothing of this drain: a reload forgets it')
  }
  const lost = settings.durable ? NOT_DURABLE[config.place] : undefined
  if (lost !== undefined) hints.push(lost)
  const unsure = settings.maintCuts === undefined && config.maint === 'unknown'
  if (own === 'drain' && unsure) {
    hints.push(
      'what maint does to its connections is not known from the configuration, so it is not sealed: maintCuts says it',
    )
  }
  return hints
}

/** What a person should know of a server that HAProxy has not. */
export function hintsOfAbsent(config: Configured): readonly string[] {
  return config.place === 'line'
    ? ['the configuration has it, HAProxy was not reloaded since, or it was removed at run time']
    : []
}

/** Why a drain of a server that the API has not in its configuration can't be made durable. */
export const NOT_DURABLE: Readonly<Record<Configured['place'], string | undefined>> = {
  line: undefined,
  'run time': 'not in the configuration: a reload removes it, so there is nothing to make durable',
  listen: 'it is in a listen section, which this API can not write: a reload forgets its drain',
  template:
    'it is a slot of a server-template, which this API can not write: a reload forgets its drain',
  unknown:
    "configuration/raw can't be read, so it is not known where it stands: a reload may forget its drain",
  unread: "the configuration can't be read just now: a reload may forget its drain",
}

/** What keeps a server out of balancing after a reload. */
function wordsOfMarks(config: Configured): string {
  const marks = [
    ...(config.weight === 0 ? ['weight 0'] : []),
    ...(config.maintenance === 'enabled' ? ['disabled'] : []),
  ]
  return marks.join(' and ')
}

function usable({ row }: Found): boolean {
  return serving(row.status) && row.weight > 0
}
