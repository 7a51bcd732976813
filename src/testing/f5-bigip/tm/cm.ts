import { link, ok, word, type Call, type Lab } from '../rest/call.js'
import { configError, entries, row, type Answer } from '../rest/replies.js'
import type { Unit } from '../device/unit.js'

/** `/mgmt/tm/cm...`: roles, the device group, its sync. */
export function cm(call: Call): Answer | undefined {
  const [, , area, name] = call.segments
  if (area === undefined && call.method === 'POST') return configSync(call)
  if (call.method !== 'GET') return undefined
  switch (area) {
    case undefined:
      return ok({ kind: 'tm:cm:cmcollectionstate', selfLink: link(call, 'tm/cm'), items: [] })
    case 'failover-status':
      return ok(failoverStatus(call))
    case 'sync-status':
      return ok(syncStatus(call))
    case 'device':
      return listOrOne(
        call,
        'device',
        name,
        call.lab.units.map((unit) => device(call, unit)),
      )
    case 'device-group':
      return listOrOne(call, 'device-group', name, deviceGroups(call))
    case 'traffic-group':
      return listOrOne(call, 'traffic-group', name, trafficGroups(call))
    default:
      return undefined
  }
}

/** With automatic sync, a change of one unit reaches the others at once. */
export function autoSync(lab: Lab, from: Unit): void {
  if (lab.group === undefined || !lab.autoSync) return
  push(lab, from)
}

/** The configuration of one unit is copied to the others. */
export function push(lab: Lab, from: Unit): void {
  for (const unit of lab.units) {
    if (unit !== from) unit.config.copyFrom(from.config)
    unit.syncedRevision = from.config.revision
  }
}

/**
 * The active unit becomes standby and its flows end; the named one takes over, or the next one in order. A single
 * unit that is standby becomes active again.
 */
export function failOver(lab: Lab, to?: string): void {
  const { units } = lab
  const was = units.find((unit) => unit.role === 'active')
  const inOrder = units[was === undefined ? 0 : (units.indexOf(was) + 1) % units.length]
  const next = to === undefined ? inOrder : units.find((unit) => unit.name === to)
  if (next === undefined) throw new Error(`the fake has no unit ${to ?? ''}`)
  was?.setRole('standby')
  was?.cut(() => true)
  if (was !== next) next.setRole('active')
}

function configSync(call: Call): Answer {
  const args = (word(call, 'utilCmdArgs') ?? '').trim().split(/\s+/)
  const [command, direction, group] = args
  if (word(call, 'command') !== 'run' || command !== 'config-sync') {
    throw configError(400, `invalid command arguments "${args.join(' ')}"`)
  }
  const name = group?.replace(/^\/Common\//, '')
  if (call.lab.group === undefined || name !== call.lab.group) {
    throw configError(
      400,
      `01070734:3: The requested device group (${group ?? ''}) was not found.`,
      3,
    )
  }
  const other = call.lab.units.find((unit) => unit !== call.unit)
  if (call.lab.syncStatus === undefined) {
    if (direction === 'to-group') push(call.lab, call.unit)
    else if (direction === 'from-group' && other !== undefined) push(call.lab, other)
    else throw configError(400, `Syntax Error: "${direction ?? ''}" unexpected argument`)
  }
  return ok({ kind: 'tm:cm:runstate', command: 'run', utilCmdArgs: args.join(' ') })
}

const ROLE = { active: 'ACTIVE', standby: 'STANDBY', forced_offline: 'FORCED OFFLINE' } as const

function failoverStatus(call: Call): object {
  const { role } = call.unit
  const details = 'https://localhost/mgmt/tm/cm/failoverStatus/0/details'
  const text = role === 'active' ? 'active' : role === 'standby' ? 'standby' : 'offline'
  const path = 'tm/cm/failover-status'
  const own = !call.lab.split && call.lab.units.every((unit) => unit.role === 'active')
  const group = `traffic-group-${own ? call.lab.units.indexOf(call.unit) + 1 : 1}`
  return row(link(call, path), 'cm:failover-status:failover-status', path, {
    ...entries({ color: role === 'active' ? 'green' : 'gray' }),
    [details]: {
      nestedStats: {
        entries: {
          [`${details}/0`]: {
            nestedStats: { entries: entries({ details: `${text} for /Common/${group}` }) },
          },
        },
      },
    },
    ...entries({ status: ROLE[role], summary: `1/1 ${text}` }),
  })
}

function syncStatus(call: Call): object {
  const { lab } = call
  const status = lab.syncStatus ?? computedStatus(lab)
  const green = status === 'In Sync' || status === 'Standalone'
  const details = 'https://localhost/mgmt/tm/cm/syncStatus/0/details'
  const line =
    lab.group === undefined
      ? 'Optional action: Add a device to the trust domain'
      : `${lab.group} (${status}): ${green ? 'All devices in the device group are in sync' : 'There is a possible change conflict'}`
  const path = 'tm/cm/sync-status'
  return row(link(call, path), 'cm:sync-status:sync-status', path, {
    ...entries({ color: green ? 'green' : 'yellow' }),
    [details]: {
      nestedStats: {
        entries: { [`${details}/0`]: { nestedStats: { entries: entries({ details: line }) } } },
      },
    },
    ...entries({
      mode: lab.group === undefined ? 'standalone' : 'high-availability',
      status,
      summary: ' ',
    }),
  })
}

function computedStatus(lab: Lab): string {
  if (lab.group === undefined) return 'Standalone'
  const changed = lab.units.some((unit) => unit.config.revision !== unit.syncedRevision)
  return changed ? 'Changes Pending' : 'In Sync'
}

function device(call: Call, unit: Unit): Record<string, unknown> {
  return {
    kind: 'tm:cm:device:devicestate',
    name: unit.name,
    partition: 'Common',
    fullPath: `/Common/${unit.name}`,
    generation: 1,
    baseMac: unit.baseMac,
    chassisId: unit.chassisId,
    selfLink: link(call, `tm/cm/device/~Common~${unit.name}`),
    failoverState: call.lab.split && unit !== call.unit ? 'offline' : unit.role.replace('_', '-'),
    hostname: unit.name,
    managementIp: call.lab.options.host,
    marketingName: 'BIG-IP Virtual Edition',
    product: 'BIG-IP',
    selfDevice: String(unit === call.unit),
    version: call.lab.release,
  }
}

function deviceGroups(call: Call): Record<string, unknown>[] {
  const named = call.lab.group === undefined ? [] : [[call.lab.group, 'sync-failover'] as const]
  return [['device_trust_group', 'sync-only'] as const, ...named].map(([name, type]) => ({
    kind: 'tm:cm:device-group:device-groupstate',
    name,
    partition: 'Common',
    fullPath: `/Common/${name}`,
    generation: 1,
    selfLink: link(call, `tm/cm/device-group/~Common~${name}`),
    autoSync: type === 'sync-only' || call.lab.autoSync ? 'enabled' : 'disabled',
    fullLoadOnSync: 'false',
    networkFailover: type === 'sync-only' ? 'disabled' : 'enabled',
    saveOnAutoSync: 'false',
    type,
  }))
}

/** One for each unit that passes traffic of its own. */
function trafficGroups(call: Call): Record<string, unknown>[] {
  const own = !call.lab.split && call.lab.units.every((unit) => unit.role === 'active')
  return (own ? call.lab.units : call.lab.units.slice(0, 1)).map((_, i) => ({
    kind: 'tm:cm:traffic-group:traffic-groupstate',
    name: `traffic-group-${i + 1}`,
    partition: 'Common',
    fullPath: `/Common/traffic-group-${i + 1}`,
    generation: 1,
    selfLink: link(call, `tm/cm/traffic-group/~Common~traffic-group-${i + 1}`),
    isFloating: 'true',
    unitId: i + 1,
  }))
}

function listOrOne(
  call: Call,
  kind: string,
  segment: string | undefined,
  items: readonly Record<string, unknown>[],
): Answer {
  if (segment === undefined) {
    return ok({
      kind: `tm:cm:${kind}:${kind}collectionstate`,
      selfLink: link(call, `tm/cm/${kind}`),
      items,
    })
  }
  const name = segment.replace(/^~Common~/, '')
  const found = items.find((item) => item['name'] === name)
  if (found !== undefined) return ok(found)
  throw configError(404, `01020036:3: The requested ${kind} (/Common/${name}) was not found.`, 3)
}
