/**
 * Pools, members and nodes as lists show them.
 *
 * What is written and what is read differ. Written are `session` `user-enabled` or `user-disabled` and
 * `state` `user-up` or `user-down`. Read back are a session that may be `monitor-enabled` and a state
 * that is a monitor's verdict (`up`, `down`, `checking`, `unchecked`, `fqdn-*`): `user-up` never comes
 * back. So states are read by rule, and no write is checked by comparing strings.
 */
import type { AdminState, Health, Json } from '../../../provider/contract.js'
import { asObject, asText, items, type JsonObject } from './json.js'
import { splitMember, type Named } from './names.js'

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
  const before = asObject(native)
  if (before === undefined || toAdmin(before['session'], before['state']) !== to) return WRITTEN[to]
  return {
    session: before['session'] === 'user-disabled' ? 'user-disabled' : 'user-enabled',
    state: before['state'] === 'user-down' ? 'user-down' : 'user-up',
  }
}

/** The member's own state: forced offline wins, then disabled; a strange session is nobody's guess. */
export function toAdmin(session: unknown, state: unknown): AdminState | 'unknown' {
  if (typeof session !== 'string' || typeof state !== 'string') return 'unknown'
  if (state === 'user-down') return 'maint'
  if (session === 'user-disabled') return 'drain'
  return session === 'user-enabled' || session === 'monitor-enabled' ? 'ready' : 'unknown'
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
  readonly appService: string | undefined
  readonly priorityGroup: number
  readonly native: Json
}

/** The properties that are asked for, as a member can carry many more. */
export const MEMBER_SELECT =
  'name,partition,fullPath,address,session,state,ephemeral,fqdn,ratio,priorityGroup,metadata,appService'

/** Members of a list, or of a pool with its members expanded. */
export function parseMembers(value: unknown): readonly MemberRow[] {
  const expanded = asObject(asObject(value)?.['membersReference'])
  return items(expanded ?? value).flatMap((item) => parseMember(item) ?? [])
}

/** One member; undefined for what is none (11.x answers 200 without an address for a missing one). */
export function parseMember(item: JsonObject): MemberRow | undefined {
  const fullPath = pathOf(item)
  if (fullPath === undefined) return undefined
  const parts = splitMember(fullPath)
  const address = asText(item['address'])
  if (parts === undefined || address === undefined) return undefined
  const fqdn = asText(asObject(item['fqdn'])?.['tmName'])
  const ephemeral = item['ephemeral'] === 'true' || item['ephemeral'] === true
  const template = !ephemeral && (fqdn !== undefined || /^any6?$/.test(address))
  const { session, state } = item
  return {
    fullPath,
    node: parts.node,
    port: parts.port,
    address: template ? undefined : address,
    own: toAdmin(session, state),
    health: toHealth(state),
    ratio: typeof item['ratio'] === 'number' ? item['ratio'] : undefined,
    fqdn,
    ephemeral,
    template,
    declared: isDeclared(item['metadata']),
    appService: asText(item['appService']),
    priorityGroup: typeof item['priorityGroup'] === 'number' ? item['priorityGroup'] : 0,
    native: { session: asText(session) ?? null, state: asText(state) ?? null },
  }
}

function pathOf(item: JsonObject): string | undefined {
  const full = asText(item['fullPath'])
  if (full?.startsWith('/') === true) return full
  const name = asText(item['name']) ?? full
  if (name === undefined) return undefined
  return `/${asText(item['partition']) ?? 'Common'}/${name}`
}

function isDeclared(metadata: unknown): boolean {
  if (!Array.isArray(metadata)) return false
  return metadata.some((entry: unknown) => {
    const { name, value } = asObject(entry) ?? {}
    return name === 'source' && value === 'declaration'
  })
}

/** What of a pool matters here. */
export interface PoolAttributes {
  readonly fullPath: string
  /** What becomes of connections when a monitor marks a member down; whether force offline counts is not documented. */
  readonly serviceDownAction: string | undefined
  readonly minActiveMembers: number
  readonly slowRampTime: number
}

export const POOL_SELECT = 'name,partition,fullPath,serviceDownAction,minActiveMembers,slowRampTime'

export function parsePool(item: JsonObject): PoolAttributes | undefined {
  const fullPath = pathOf(item)
  if (fullPath === undefined) return undefined
  const number = (name: string): number => {
    const value = item[name]
    return typeof value === 'number' ? value : 0
  }
  return {
    fullPath,
    serviceDownAction: asText(item['serviceDownAction']),
    minActiveMembers: number('minActiveMembers'),
    slowRampTime: number('slowRampTime'),
  }
}

/** A node: what a member inherits, and what can be drained in every pool at once. */
export interface NodeRow {
  readonly fullPath: string
  readonly address: string | undefined
  readonly own: AdminState | 'unknown'
  readonly health: Health
  readonly native: Json
}

export function parseNode(item: JsonObject): NodeRow | undefined {
  const fullPath = pathOf(item)
  if (fullPath === undefined || asText(item['state']) === undefined) return undefined
  const { session, state } = item
  return {
    fullPath,
    address: asText(item['address']),
    own: toAdmin(session, state),
    health: toHealth(state),
    native: { session: asText(session) ?? null, state: asText(state) ?? null },
  }
}

/** What a virtual server says about a pool's clients. */
export interface VirtualRow {
  readonly fullPath: string
  readonly pool: string | undefined
  readonly persistence: readonly string[]
  readonly profiles: readonly string[]
}

export function parseVirtual(item: JsonObject): VirtualRow | undefined {
  const fullPath = pathOf(item)
  if (fullPath === undefined) return undefined
  const persist = item['persist']
  const names = (Array.isArray(persist) ? (persist as unknown[]) : [persist]).flatMap((entry) => {
    return asText(entry) ?? asText(asObject(entry)?.['name']) ?? []
  })
  const profiles = items(item['profilesReference']).flatMap((profile) => pathOf(profile) ?? [])
  return { fullPath, pool: asText(item['pool']), persistence: names, profiles }
}
