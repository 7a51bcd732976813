import type { PersistRecord } from '../device/unit.js'
import { link, ok, type Call } from '../rest/call.js'
import { toSegment } from '../rest/names.js'
import type { Answer } from '../rest/replies.js'
import { raw, toWords } from './sys.js'

/** `/mgmt/tm/ltm/virtual`, `/mgmt/tm/ltm/profile/one-connect`, `/mgmt/tm/ltm/persistence/persist-records`. */
export function ltmOthers(call: Call): Answer | undefined {
  const [, , area, sub] = call.segments
  if (area === 'persistence' && sub === 'persist-records') return persistRecords(call)
  if (call.method !== 'GET') return undefined
  if (area === 'virtual') return ok(virtuals(call))
  if (area === 'profile' && sub === 'one-connect') return ok(oneConnectProfiles(call))
  return undefined
}

const RECORD_FILTERS = new Set([
  ...['node-addr', 'node-port', 'pool', 'virtual', 'client-addr', 'mode', 'key'],
])

/** Shows or deletes persistence records. A DELETE without options empties the device's whole table. */
function persistRecords(call: Call): Answer | undefined {
  const wanted = toWords(call.query.get('options'), RECORD_FILTERS)
  const matches = (record: PersistRecord): boolean => {
    const fields = new Map<string, string>([
      ['node-addr', record.address],
      ['node-port', String(record.port)],
      ['pool', record.pool],
      ['client-addr', record.client],
    ])
    return [...wanted].every(([key, value]) => fields.get(key) === value)
  }
  if (call.method === 'DELETE') {
    if (call.lab.options.persistDelete === 'works') call.unit.forget(matches)
    return { status: 200 }
  }
  if (call.method !== 'GET') return undefined
  const found = call.unit.records.filter(matches)
  const rows = found.map(
    ({ client, pool, address, port }) =>
      `source-address  ${client}  ${pool}  ${address}:${port}  (tmm: 0)\n`,
  )
  const text = `Sys::Persistent Connections\n${rows.join('')}Total records returned: ${found.length}\n`
  return ok(raw(call, 'ltm:persistence:persist-records:persist-records', text))
}

function virtuals(call: Call): object {
  const expand = call.query.get('expandSubcollections') === 'true'
  const items = Object.entries(call.lab.virtuals).map(([given, virtual], i) => {
    const full = given.startsWith('/') ? given : `/Common/${given}`
    const name = full.slice(full.lastIndexOf('/') + 1)
    const pool = virtual.pool.startsWith('/') ? virtual.pool : `/Common/${virtual.pool}`
    const path = `tm/ltm/virtual/${toSegment(full)}`
    const profiles = ['tcp', 'http', ...(virtual.oneConnect === true ? ['oneconnect'] : [])]
    return {
      kind: 'tm:ltm:virtual:virtualstate',
      name,
      partition: full.split('/')[1],
      fullPath: full,
      selfLink: link(call, path),
      destination: `/Common/198.51.100.${i + 10}:80`,
      enabled: true,
      ipProtocol: 'tcp',
      pool,
      ...(virtual.persist === undefined
        ? {}
        : { persist: [{ name: virtual.persist, partition: 'Common', tmDefault: 'yes' }] }),
      profilesReference: {
        link: link(call, `${path}/profiles`),
        isSubcollection: true,
        ...(expand
          ? {
              items: profiles.map((profile) => ({
                kind: 'tm:ltm:virtual:profiles:profilesstate',
                name: profile,
                partition: 'Common',
                fullPath: `/Common/${profile}`,
                context: 'all',
              })),
            }
          : {}),
      },
    }
  })
  return {
    kind: 'tm:ltm:virtual:virtualcollectionstate',
    selfLink: link(call, 'tm/ltm/virtual'),
    items,
  }
}

function oneConnectProfiles(call: Call): object {
  return {
    kind: 'tm:ltm:profile:one-connect:one-connectcollectionstate',
    selfLink: link(call, 'tm/ltm/profile/one-connect'),
    items: [
      {
        kind: 'tm:ltm:profile:one-connect:one-connectstate',
        name: 'oneconnect',
        partition: 'Common',
        fullPath: '/Common/oneconnect',
        selfLink: link(call, 'tm/ltm/profile/one-connect/~Common~oneconnect'),
        idleTimeoutOverride: 'disabled',
        maxAge: 86_400,
        maxReuse: 1_000,
        maxSize: 10_000,
        sourceMask: 'any',
      },
    ],
  }
}
