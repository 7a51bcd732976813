import type { LoadScope, Reading } from '../../../provider/contract.js'
import type { ReadUnit } from './view.js'

/**
 * Units that pass the traffic of different groups are no pair of rivals. Where two are active for one group,
 * they have lost each other: which of them is to go on, and with which configuration, is not known.
 *
 * @returns makes the scopes of both unread, with the reason; undefined where there are none
 */
export function splitOf(active: readonly ReadUnit[]): ((reading: Reading) => Reading) | undefined {
  const byGroup = new Map<string, string[]>()
  for (const { device, role } of active) {
    for (const group of new Set(role.groups)) {
      byGroup.set(group, [...(byGroup.get(group) ?? []), device.host])
    }
  }
  const [split] = [...byGroup].filter(([, hosts]) => hosts.length > 1)
  if (split === undefined) return undefined
  const [group, hosts] = split
  const note = `${hosts.join(' and ')} are both active for ${group}: they no longer see each other, and both pass traffic; resolve that ('show cm failover-status') before a member can be reported idle`
  const isTheirs = ({ scope }: LoadScope): boolean =>
    hosts.some((host) => scope === host || scope.startsWith(`${host} `))
  const toUnread = (scope: LoadScope): LoadScope =>
    isTheirs(scope)
      ? { ...scope, state: 'unread', active: 0, queued: 0, inForce: false, note }
      : scope
  return (reading) => ({ ...reading, scopes: reading.scopes.map(toUnread) })
}
