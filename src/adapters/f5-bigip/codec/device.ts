/** What a unit says of itself: role, readiness, release, sync, and what login hands out. */
import { asObject, asText, description, malformed, rawText, rows, type JsonObject } from './json.js'

/** `unknown`: the device did not say. */
export type Role = 'active' | 'standby' | 'offline' | 'unknown'

export interface RoleReading {
  readonly role: Role
  /** Traffic groups this unit is active for, where it lists them. */
  readonly groups: readonly string[]
  readonly text: string
}

/** `GET /mgmt/tm/cm/failover-status`. */
export function parseFailoverStatus(value: unknown): RoleReading {
  const [row] = rows(value)
  const text = (row && description(row.fields, 'status')) ?? ''
  const groups: string[] = []
  collectDetails(value, (detail) => {
    const group = /^active for (\S+)/i.exec(detail)?.[1]
    if (group !== undefined) groups.push(group)
  })
  return { role: toRole(text), groups, text }
}

function toRole(text: string): Role {
  const word = text.toLowerCase().replace(/[\s_-]+/g, ' ')
  if (word === 'active') return 'active'
  if (word === 'standby') return 'standby'
  return word.includes('offline') ? 'offline' : 'unknown'
}

function collectDetails(value: unknown, take: (detail: string) => void): void {
  const entries = asObject(asObject(value)?.['entries'])
  for (const entry of Object.values(entries ?? {})) {
    const nested = asObject(asObject(entry)?.['nestedStats'])
    if (nested === undefined) continue
    const text = description(asObject(nested['entries']) ?? {}, 'details')
    if (text !== undefined) take(text)
    collectDetails(nested, take)
  }
}

/** `GET /mgmt/tm/sys/failover`: text such as `Failover active for 0d 01:20:32`. */
export function parseFailoverText(
  value: unknown,
): { readonly role: Role; readonly seconds: number } | undefined {
  const text = rawText(value)
  if (text === undefined) return undefined
  const match = /Failover\s+(\S+)\s+for\s+(\d+)d\s+(\d+):(\d+):(\d+)/i.exec(text)
  if (match === null) return undefined
  const [, role = '', days, hours, minutes, seconds] = match
  const clock = Number(hours) * 3_600 + Number(minutes) * 60 + Number(seconds)
  return { role: toRole(role), seconds: Number(days) * 86_400 + clock }
}

/** `GET /mgmt/tm/sys/ready`: whether configuration, licence and provisioning are all loaded. */
export function parseReady(value: unknown): boolean {
  const [row] = rows(value)
  if (row === undefined) return false
  const parts = ['configReady', 'licenseReady', 'provisionReady']
  return parts.every((part) => description(row.fields, part) === 'yes')
}

/** `GET /mgmt/tm/sys/version`: such as `15.1.10`. */
export function parseVersion(value: unknown): string {
  const [row] = rows(value)
  const version = row && description(row.fields, 'Version')
  if (version !== undefined) return version
  const link = asText(asObject(value)?.['selfLink'])
  const found = /[?&]ver=([\w.]+)/.exec(link ?? '')?.[1]
  if (found !== undefined) return found
  throw malformed('sys/version: expected a row with Version', value)
}

/** `GET /mgmt/tm/cm/sync-status`: such as `In Sync`, `Changes Pending`, `Standalone`. */
export function parseSyncStatus(value: unknown): string {
  const [row] = rows(value)
  return (row && description(row.fields, 'status')) ?? 'unknown'
}

export interface LoginToken {
  readonly token: string
  /** Milliseconds it lives, by the device's clock alone: both of its times are the device's. */
  readonly lifetime: number
}

/** `POST /mgmt/shared/authn/login`. */
export function parseLogin(value: unknown): LoginToken {
  const token = asObject(asObject(value)?.['token'])
  const name = asText(token?.['token'])
  if (token === undefined || name === undefined) {
    throw malformed('authn/login: expected token.token', Object.keys(asObject(value) ?? {}))
  }
  return { token: name, lifetime: toLifetime(token) }
}

const DEFAULT_LIFETIME = 1_200_000

function toLifetime(token: JsonObject): number {
  const { expirationMicros, lastUpdateMicros, timeout } = token
  if (typeof expirationMicros === 'number' && typeof lastUpdateMicros === 'number') {
    const ms = (expirationMicros - lastUpdateMicros) / 1_000
    if (ms > 0) return ms
  }
  return typeof timeout === 'number' && timeout > 0 ? timeout * 1_000 : DEFAULT_LIFETIME
}
