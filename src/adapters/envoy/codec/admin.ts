/**
 * What Envoy's admin API answers, as values; `/clusters` is read in `clusters-text.ts`.
 */
import { answer, NOBODY } from './answer.js'
import type { EdsStatus } from './status.js'

/** One host of one cluster, as a proxy sees it. */
export interface HostRow {
  readonly member: string
  readonly active: number
  /** Requests bound to this host that wait for a connection. Not counted before Envoy 1.39.3. */
  readonly pending: number | undefined
  readonly connections: number
  /** Requests and connections begun so far. */
  readonly begun: number
  readonly eds: EdsStatus
  readonly failedCheck: boolean
  readonly ejected: boolean
  readonly degraded: boolean
  /** Left out of the panic sum: draining, or new and not checked yet. */
  readonly excluded: boolean
  /** Removed from the set; kept, and given new work, until its active check fails. */
  readonly pendingRemoval: boolean
  readonly priority: number
  readonly weight: number
}

/** One cluster, as a proxy sees it. */
export interface ClusterRows {
  readonly cluster: string
  readonly service: string
  /** All hosts; where only some were asked for, those, and all that are not simply healthy. */
  readonly hosts: ReadonlyMap<string, HostRow>
  /** Those that are left out of `hosts`, by priority. */
  readonly plain: ReadonlyMap<number, PlainHosts>
}

/** Healthy hosts that nobody asked for, together. */
export interface PlainHosts {
  readonly count: number
  readonly active: number
  readonly connections: number
}

/** No host is left out. */
export const ALL: ClusterRows['plain'] = new Map()

/** A number of all hosts of a cluster. */
export function sumOf({ hosts, plain }: ClusterRows, of: 'active' | 'connections'): number {
  let sum = 0
  for (const row of hosts.values()) sum += row[of]
  for (const rest of plain.values()) sum += rest[of]
  return sum
}

/** How many hosts a cluster has. */
export function sizeOf({ hosts, plain }: ClusterRows): number {
  let size = hosts.size
  for (const { count } of plain.values()) size += count
  return size
}

/** The panic threshold that `/runtime` sets in place of those of the clusters, in percent. */
export function runtimeThreshold(text: string, from = NOBODY): number | undefined {
  const entry = answer(text, '/runtime', from)
    .at('entries')
    .fields()
    .find(([key]) => key === 'upstream.healthy_panic_threshold')
  const value = entry?.[1].at('final_value').word() ?? ''
  return /^\d{1,15}$/.test(value) ? Math.min(100, Number(value)) : undefined
}

/** Whether `/runtime` says that a feature is switched off. */
export function isSwitchedOff(text: string, feature: string, from = NOBODY): boolean {
  const entries = answer(text, '/runtime', from).at('entries').fields()
  return entries.some(
    ([key, entry]) => key.endsWith(feature) && entry.at('final_value').word() === 'false',
  )
}
