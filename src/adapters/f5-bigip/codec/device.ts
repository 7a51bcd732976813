/** What a unit says of itself: role, readiness, release, sync, and what login hands out. */
import type { JsonValue } from '../../../kit/json.js'
import { parseVersion } from '../../../kit/version.js'
import { description, rawText, rows } from './entries.js'

/** `unknown`: the device did not say. */
export type Role = 'active' | 'standby' | 'forced-offline' | 'offline' | 'unknown'

export interface RoleReading {
  readonly role: Role
  /** Traffic groups this unit is active for, where it lists them. */
  readonly groups: readonly string[]
  readonly text: string
}

/** `GET /mgmt/tm/cm/failover-status`. */
export function parseFailoverStatus(value: JsonValue): RoleReading {
  const [row] = rows(value)
  const text = (row && description(row, 'status')) ?? ''
  const groups: string[] = []
  collectDetails(value, (detail) => {
    const group = /^active for (\S{1,512})(?:\s|$)/i.exec(detail.slice(0, LOOKED_AT))?.[1]
    if (group !== undefined) groups.push(group)
  })
  return { role: toRole(text), groups, text }
}

/** The words looked for stand at the beginning of a text. */
const LOOKED_AT = 1_000

function toRole(text: string): Role {
  const word = text
    .slice(0, LOOKED_AT)
    .toLowerCase()
    .replace(/[\s_-]+/g, ' ')
  if (word === 'active') return 'active'
  if (word === 'standby') return 'standby'
  if (word === 'forced offline') return 'forced-offline'
  return word.includes('offline') ? 'offline' : 'unknown'
}

function collectDetails(value: JsonValue, take: (detail: string) => void): void {
  for (const [, entry] of value.at('entries').fields()) {
    const nested = entry.at('nestedStats')
    if (!nested.present) continue
    const text = description(nested.at('entries'), 'details')
    if (text !== undefined) take(text)
    collectDetails(nested, take)
  }
}

/** A device of the trust domain, as one of them lists it. */
export interface PeerRow {
  readonly name: string
  /** The one that was asked. */
  readonly self: boolean
  readonly role: Role
  /** What tells it from another machine of that name, the surest first; undefined where it is not told. */
  readonly machine: readonly (string | undefined)[]
}

/** Whether two rows may be one machine: by name, and by the first thing that both of them tell. */
export function isSameMachine(one: PeerRow, other: PeerRow): boolean {
  if (one.name !== other.name) return false
  const told = one.machine.findIndex(
    (word, i) => word !== undefined && other.machine[i] !== undefined,
  )
  return told < 0 || one.machine[told] === other.machine[told]
}

const MACHINE = ['chassisId', 'baseMac', 'managementIp'] as const

/** `GET /mgmt/tm/cm/device`: every device of the trust domain with the role it was last heard to have. */
export function parsePeers(list: JsonValue): readonly PeerRow[] {
  return list
    .at('items')
    .rows()
    .map((item) => ({
      name: item.at('name').neededText(),
      self: item.at('selfDevice').word() === 'true',
      role: toRole(item.at('failoverState').text() ?? ''),
      machine: MACHINE.map((key) => item.at(key).text()?.slice(0, LOOKED_AT).toLowerCase()),
    }))
}

/** `GET /mgmt/tm/sys/failover`: text such as `Failover active for 0d 01:20:32`. */
export function parseFailoverText(
  value: JsonValue,
): { readonly role: Role; readonly seconds: number } | undefined {
  const text = rawText(value)?.slice(0, LOOKED_AT)
  if (text === undefined) return undefined
  const match =
    /Failover\s{1,9}(\S{1,40})\s{1,9}for\s{1,9}(\d{1,6})d\s{1,9}(\d+):(\d+):(\d+)/i.exec(text)
  if (match === null) return undefined
  const [, role = '', days, hours, minutes, seconds] = match
  const clock = Number(hours) * 3_600 + Number(minutes) * 60 + Number(seconds)
  return { role: toRole(role), seconds: Number(days) * 86_400 + clock }
}

/** `GET /mgmt/tm/sys/ready`: whether configuration, licence and provisioning are all loaded. */
export function parseReady(value: JsonValue): boolean {
  const [row] = rows(value)
  if (row === undefined) return false
  const parts = ['configReady', 'licenseReady', 'provisionReady']
  return parts.every((part) => description(row, part) === 'yes')
}

/** `GET /mgmt/tm/sys/version`: such as `15.1.10`. */
export function readVersion(value: JsonValue): string {
  const [row] = rows(value)
  const link = value.at('selfLink').text()?.slice(0, LOOKED_AT)
  const said = (row && description(row, 'Version')) ?? /[?&]ver=([\w.]+)/.exec(link ?? '')?.[1]
  const version = parseVersion(said ?? '')
  if (version === undefined) throw value.wrong('a row with Version, such as 15.1.10')
  return version.text
}

/** `GET /mgmt/tm/cm/sync-status`: such as `In Sync`, `Changes Pending`, `Standalone`. */
export function parseSyncStatus(value: JsonValue): string {
  const [row] = rows(value)
  return (row && description(row, 'status')) ?? 'unknown'
}

export interface LoginToken {
  readonly token: string
  /** Milliseconds it lives, by the device's clock alone: both of its times are the device's. */
  readonly lifetime: number
}

/** `POST /mgmt/shared/authn/login`. */
export function parseLogin(value: JsonValue): LoginToken {
  const token = value.at('token')
  return { token: token.at('token').neededText(), lifetime: toLifetime(token) }
}

const DEFAULT_LIFETIME = 1_200_000

function toLifetime(token: JsonValue): number {
  const expires = token.at('expirationMicros').number()
  const updated = token.at('lastUpdateMicros').number()
  const timeout = token.at('timeout').number()
  const ms = ((expires ?? 0) - (updated ?? 0)) / 1_000
  if (expires !== undefined && updated !== undefined && ms > 0) return ms
  return timeout !== undefined && timeout > 0 ? timeout * 1_000 : DEFAULT_LIFETIME
}
