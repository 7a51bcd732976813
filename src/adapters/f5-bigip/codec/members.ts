/**
 * Pools, members and nodes as lists show them.
 *
 * What is written and what is read differ. Written are `session` `user-enabled` or `user-disabled` and
 * `state` `user-up` or `user-down`. Read back are a session that may be `monitor-enabled` and a state
 * that is a monitor's verdict (`up`, `down`, `checking`, `unchecked`, `fqdn-*`): `user-up` never comes
 * back. So states are read by rule, and no write is checked by comparing strings.
 */
import { isIP } from '../../../provider/builtins.js'
import type { AdminState, Health, Json } from '../../../provider/contract.js'
import { isObject, type JsonValue } from '../../../kit/json.js'
import { DrainableError, isDrainableError } from '../../../provider/error.js'
import { quote } from '../../../provider/quote.js'
import { isPossible, splitMember, type Named } from './names.js'

/** The two words that are written: always both, as each alone leaves a state it cannot leave. */
export interface Words {
  readonly session: 'user-enabled' | 'user-disabled'
  readonly state: 'user-up' | 'user-down'
}

const WRITTEN: Readonly<Record<AdminState, Words>> = {
  ready: { session: 'user-enabled', state: 'user-up' },
  drain: { session: 'user-disabled', state: 'user-up' },
  maint: { session: 'user-disabled', state: 'user-down' },
}

/** What to write for a state; `native`, where it means the same state, keeps its own odd words. */
export function toWords(to: AdminState, native?: Json): Words {
  const before = native
  if (!isObject(before) || toAdmin(before['session'], before['state']) !== to) return WRITTEN[to]
  return {
    session: before['session'] === 'user-disabled' ? 'user-disabled' : 'user-enabled',
    state: before['state'] === 'user-down' ? 'user-down' : 'user-up',
  }
}

/** The member's own state: forced offline wins, then disabled; a strange session is not guessed at. */
export function toAdmin(session: unknown, state: unknown): AdminState | 'unknown' {
  if (typeof session !== 'string' || typeof state !== 'string') return 'unknown'
  if (state === 'user-down') return 'maint'
  if (session === 'user-disabled') return 'drain'
  return session === 'user-enabled' || session === 'monitor-enabled' ? 'ready' : 'unknown'
}

/** The two words of a member or node, for a person. */
export function wordsOf(native: unknown): string {
  const { session, state } = isObject(native) ? native : {}
  const word = (value: unknown): string => (typeof value === 'string' ? quote(value, 40) : 'none')
  return `session ${word(session)}, state ${word(state)}`
}

export function toHealth(state: unknown): Health {
  switch (state) {
    case 'up':
    case 'fqdn-up':
      return 'up'
    case 'down':
    case 'fqdn-down':
    case 'fqdn-up-no-addr':
      return 'down'
    case 'unchecked':
      return 'unchecked'
    default:
      return 'unknown' // checking, user-down (monitors stop), anything new
  }
}

/** One member of a pool. */
export interface MemberRow extends Named {
  readonly own: AdminState | 'unknown'
  readonly health: Health
  readonly ratio: number | undefined
  /** DNS name, for a template and for what it made. */
  readonly fqdn: string | undefined
  readonly ephemeral: boolean
  /** A template takes no traffic: its ephemeral members do. */
  readonly template: boolean
  /** AS3 marks what it owns. */
  readonly declared: boolean
  readonly native: Json
}

/** The properties that are asked for, as a member can carry many more. */
export const MEMBER_SELECT =
  'name,partition,fullPath,address,session,state,ephemeral,fqdn,ratio,metadata'

/**
 * The items of a list. An empty one has a kind and no items: what has neither is no list, and proves
 * no absence.
 */
export function parseItems(list: JsonValue): readonly JsonValue[] {
  const items = list.at('items')
  if (!items.present && list.at('kind').text() === undefined) throw list.wrong('a list with items')
  return items.rows()
}

/** The rows of a list over its pages: one that is odd does not hide the others. */
export class Rows<T> {
  readonly #parse: (item: JsonValue) => T
  readonly #read = new Map<string, T>() // by path: a list that changes while it is paged repeats items
  readonly #odd = new Map<string, DrainableError>()

  constructor(parse: (item: JsonValue) => T) {
    this.#parse = parse
  }

  /** Takes one page. An object that it has twice, in two states, is odd: neither is to be believed. */
  take(items: readonly JsonValue[]): this {
    const page = new Map<string, string>()
    for (const [i, item] of items.entries()) {
      let path = `${this.count} ${i}`
      try {
        path = pathOf(item)
        const state = JSON.stringify(stateOf(item))
        const isOne = (page.get(path) ?? state) === state
        if (!isOne) this.#odd.set(path, item.wrong(`one state for ${quote(path, 120)}`))
        page.set(path, state)
        this.#read.set(path, this.#parse(item))
      } catch (error) {
        if (!isDrainableError(error, 'MALFORMED_REPLY')) throw error
        this.#odd.set(path, named(item, error))
      }
    }
    return this
  }

  /** How many there are, the odd ones too. */
  get count(): number {
    return new Set([...this.#read.keys(), ...this.#odd.keys()]).size
  }

  /** What was read, and what can't be, with its name: nothing is said of these, nor of what is not among the rows. */
  get all(): { readonly rows: readonly T[]; readonly odd: readonly DrainableError[] } {
    const rows = [...this.#read].flatMap(([path, row]) => (this.#odd.has(path) ? [] : [row]))
    return { rows, odd: [...this.#odd.values()] }
  }
}

/** The members of a pool, as far as their rows could be read. */
export type Members = Rows<MemberRow>['all']

/** The members that the items of a list are. */
export function toMembers(items: readonly JsonValue[]): Members {
  return new Rows(parseListed).take(items).all
}

/** The members that stand with their pool in a list of pools; undefined where there are more of them on another page. */
export function parseExpanded(pool: JsonValue): Members | undefined {
  const reference = pool.at('membersReference').needed('its members')
  if (reference.at('nextLink').present) return undefined
  return toMembers(reference.at('items').rows())
}

/** The error of a row with the row's name. */
function named(item: JsonValue, error: DrainableError): DrainableError {
  const { fullPath, name } = isObject(item.value) ? item.value : {}
  const said = typeof fullPath === 'string' ? fullPath : name
  if (typeof said !== 'string') return error
  const words = `${quote(said, 120)}: ${error.message}`
  return new DrainableError('MALFORMED_REPLY', words, { provider: 'f5-bigip' })
}

/** A member of a list: what has no address there is odd. */
export function parseListed(item: JsonValue): MemberRow {
  const member = parseMember(item)
  if (member === undefined) throw item.wrong('a member with its address')
  return member
}

/** One member that was asked for; undefined where it is none (11.x answers 200 without an address for a missing one). */
export function parseMember(item: JsonValue): MemberRow | undefined {
  const fullPath = pathOf(item)
  const parts = splitMember(fullPath)
  if (parts === undefined) throw item.wrong('a member whose name ends with its port')
  const address = addressOf(item)
  if (address === undefined) return undefined
  const fqdn = item.at('fqdn').at('tmName').text()
  const ephemeral = item.at('ephemeral').word() === 'true'
  const template = !ephemeral && (fqdn !== undefined || ANY.test(address))
  const { session, state } = stateOf(item)
  return {
    fullPath,
    node: parts.node,
    port: parts.port,
    address: template || ANY.test(address) ? undefined : address,
    own: toAdmin(session, state),
    health: toHealth(state),
    ratio: item.at('ratio').count(),
    fqdn,
    ephemeral,
    template,
    declared: isDeclared(item.at('metadata')),
    native: { session: session ?? null, state: state ?? null },
  }
}

/** The two words of a member or node. */
export function stateOf(item: JsonValue): {
  readonly session: string | undefined
  readonly state: string | undefined
} {
  return { session: item.at('session').text(), state: item.at('state').text() }
}

/** The address of a template, whose members DNS finds. */
const ANY = /^any6?$/
/** The same of a partition with a default route domain, as far as is known. */
const ANY_THERE = /^any6?%\d{1,5}$/

/** An address as the device writes it: with its route domain behind it, or `any6` for "by name". */
function addressOf(item: JsonValue): string | undefined {
  const field = item.at('address')
  const address = field.text()
  if (address === undefined || ANY.test(address)) return address
  const isTemplate = item.at('fqdn').at('tmName').present && item.at('ephemeral').word() !== 'true'
  if (isTemplate && ANY_THERE.test(address)) return address.split('%')[0]
  const [ip = '', domain = '0', ...more] = address.split('%')
  if (isIP(ip) !== 0 && /^\d{1,5}$/.test(domain) && more.length === 0) return address
  throw field.wrong('an IP address')
}

/** The full path of an object: what has none that is possible is no object of a list. */
export function pathOf(item: JsonValue): string {
  const field = item.at('fullPath')
  const full = field.text()
  const name = item.at('name').text()
  const partition = item.at('partition').text() ?? 'Common'
  const path = full?.startsWith('/') === true ? full : `/${partition}/${name ?? full ?? ''}`
  if (isPossible(path)) return path
  throw (full === undefined ? item.at('name') : field).wrong('a name that an object can have')
}

function isDeclared(metadata: JsonValue): boolean {
  return metadata
    .rows()
    .some((row) => row.at('name').word() === 'source' && row.at('value').word() === 'declaration')
}

/** What of a pool matters here. */
export interface PoolAttributes {
  readonly fullPath: string
  /** What becomes of connections when a monitor marks a member down; whether force offline counts is not documented. */
  readonly serviceDownAction: string | undefined
  readonly minActiveMembers: number
  /** Whether requests wait for its members (`queueOnConnectionLimit`); undefined: it does not say. */
  readonly queues: boolean | undefined
}

/** A pool that does not tell its properties. */
export function unknownPool(fullPath: string): PoolAttributes {
  return { fullPath, serviceDownAction: undefined, minActiveMembers: 0, queues: undefined }
}

export const POOL_SELECT =
  'name,partition,fullPath,serviceDownAction,minActiveMembers,queueOnConnectionLimit'

export function parsePool(item: JsonValue): PoolAttributes {
  const queues = item.at('queueOnConnectionLimit').text()
  return {
    fullPath: pathOf(item),
    serviceDownAction: item.at('serviceDownAction').text(),
    minActiveMembers: item.at('minActiveMembers').count() ?? 0,
    queues: queues === undefined ? undefined : queues !== 'disabled',
  }
}

/** A node: what a member inherits, and what can be drained in every pool at once. */
export interface NodeRow {
  readonly fullPath: string
  readonly address: string | undefined
  readonly own: AdminState | 'unknown'
  readonly health: Health
  /** Made by an FQDN template: BIG-IP refuses changes of such ones in places. */
  readonly ephemeral: boolean
  readonly native: Json
}

export const NODE_SELECT = 'name,partition,fullPath,address,session,state,ephemeral,fqdn'

export function parseNode(item: JsonValue): NodeRow {
  const { session, state } = stateOf(item)
  if (state === undefined) throw item.wrong('a node with its state')
  return {
    fullPath: pathOf(item),
    address: addressOf(item),
    own: toAdmin(session, state),
    health: toHealth(state),
    ephemeral: item.at('ephemeral').word() === 'true',
    native: { session: session ?? null, state },
  }
}

/** What a virtual server says about a pool's clients. */
export interface VirtualRow {
  readonly fullPath: string
  readonly pool: string | undefined
  readonly persistence: readonly string[]
  readonly profiles: readonly string[]
}

export function parseVirtual(item: JsonValue): VirtualRow {
  const persist = item.at('persist')
  // One profile as its name, or a list of objects
  const several = Array.isArray(persist.value)
  const names = several ? persist.rows().map((row) => row.at('name').text()) : [persist.text()]
  return {
    fullPath: pathOf(item),
    pool: item.at('pool').text(),
    persistence: names.filter((name) => name !== undefined),
    profiles: item.at('profilesReference').at('items').rows().map(pathOf),
  }
}
