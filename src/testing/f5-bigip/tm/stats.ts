import { readState, type FakeMember, type FakeNode, type FakePool } from '../device/config.js'
import { link, ok, type Call } from '../rest/call.js'
import { partitionOf, toSegment } from '../rest/names.js'
import { entries, type Answer } from '../rest/replies.js'
import { type Counters, NO_COUNTERS } from '../device/timeline.js'

/** Statistics of one member, of all members of a pool, or of all pools of a partition. */
export function memberStats(
  call: Call,
  of: FakePool | 'Common',
  only?: FakeMember,
): Answer | undefined {
  if (call.method !== 'GET') return undefined
  if (of === 'Common' && !call.lab.options.allStats) return undefined
  const pools =
    of === 'Common'
      ? [...call.unit.config.pools.values()].filter((p) => partitionOf(p.fullPath) === 'Common')
      : [of]
  const found: Record<string, object> = {}
  for (const pool of pools) {
    for (const member of only === undefined ? pool.members.values() : [only]) {
      const path = `tm/ltm/pool/${toSegment(pool.fullPath)}/members/${toSegment(member.fullPath)}`
      // From 14 on, the answer for a single member repeats its name in the key
      const repeats = only !== undefined && call.lab.options.version !== '13.1'
      const key = `${path}${repeats ? `/${toSegment(member.fullPath)}` : ''}/stats`
      found[`https://localhost/mgmt/${key}`] = {
        nestedStats: {
          kind: 'tm:ltm:pool:members:membersstats',
          selfLink: link(call, key),
          entries: memberEntries(call, pool, member),
        },
      }
    }
  }
  const kind =
    only === undefined
      ? 'tm:ltm:pool:members:memberscollectionstats'
      : 'tm:ltm:pool:members:membersstats'
  return ok({ kind, selfLink: link(call, call.path.replace(/^\/mgmt\//, '')), entries: found })
}

function memberEntries(call: Call, pool: FakePool, member: FakeMember): object {
  const shown = call.unit.counters(pool.fullPath, member.fullPath).shown
  const node = call.unit.config.nodes.get(member.node)
  const parent = node !== undefined && (node.session === 'user-disabled' || node.forcedDown)
  const own = member.session === 'user-disabled' || member.forcedDown
  const { state } = readState(member)
  const down = state === 'down' || member.forcedDown || node?.forcedDown === true
  return entries({
    addr: member.address === 'any6' ? '::' : member.address,
    ...connq(shown.depth),
    curSessions: shown.curSessions,
    monitorRule: member.monitor === 'unchecked' ? 'none' : '/Common/http (pool monitor)',
    monitorStatus: member.forcedDown
      ? 'forced-down'
      : node?.forcedDown === true
        ? 'address-down'
        : state,
    nodeName: member.node,
    poolName: pool.fullPath,
    port: member.port,
    ...serverside(shown),
    sessionStatus: own ? 'user-disabled' : parent ? 'addr-disabled' : 'enabled',
    'status.availabilityState':
      state === 'unchecked' || state === 'checking' ? 'unknown' : down ? 'offline' : 'available',
    'status.enabledState': own ? 'disabled' : parent ? 'disabled-by-parent' : 'enabled',
    'status.statusReason': down ? 'Pool member has been marked down' : 'Pool member is available',
    totRequests: shown.totRequests,
  })
}

/** Statistics of pools. */
export function poolStats(call: Call, pools: readonly FakePool[]): Answer | undefined {
  if (call.method !== 'GET') return undefined
  const found = pools.map((pool) => {
    const all = sum(
      call,
      [...pool.members.values()].map((member) => [pool, member] as const),
    )
    const serving = [...pool.members.values()].filter(
      (member) =>
        member.session === 'user-enabled' && !member.forcedDown && member.monitor !== 'down',
    )
    const key = `tm/ltm/pool/${toSegment(pool.fullPath)}/stats`
    const stats = {
      activeMemberCnt: serving.length,
      availableMemberCnt: serving.length,
      ...prefixed('connqAll', connq(all.depth)),
      ...connq(all.depth),
      curPriogrp: 0,
      curSessions: all.curSessions,
      highestPriogrp: 0,
      lowestPriogrp: 0,
      memberCnt: pool.members.size,
      minActiveMembers: 0,
      monitorRule: '/Common/http',
      tmName: pool.fullPath,
      ...serverside(all),
      'status.availabilityState': serving.length > 0 ? 'available' : 'offline',
      'status.enabledState': 'enabled',
      'status.statusReason':
        serving.length > 0 ? 'The pool is available' : 'The children pool member(s) are down',
      totRequests: all.totRequests,
    }
    return [
      `https://localhost/mgmt/${key}`,
      {
        nestedStats: {
          kind: 'tm:ltm:pool:poolstats',
          selfLink: link(call, key),
          entries: entries(stats),
        },
      },
    ] as const
  })
  return ok({
    kind: 'tm:ltm:pool:poolstats',
    selfLink: link(call, call.path.replace(/^\/mgmt\//, '')),
    entries: Object.fromEntries(found),
  })
}

/** Statistics of a node: those of its members in every pool, and what an iRule sends it past them. */
export function nodeStats(call: Call, node: FakeNode): Answer | undefined {
  if (call.method !== 'GET' || !call.lab.options.nodeStats) return undefined
  const of = [...call.unit.config.pools.values()].flatMap((pool) =>
    [...pool.members.values()]
      .filter((member) => member.node === node.fullPath)
      .map((member) => [pool, member] as const),
  )
  const beside = call.unit.counters('', node.fullPath).shown
  const all = sum(call, of, beside)
  const key = `tm/ltm/node/${toSegment(node.fullPath)}/stats`
  const off = node.session === 'user-disabled' || node.forcedDown
  return ok({
    kind: 'tm:ltm:node:nodestats',
    selfLink: link(call, key),
    entries: {
      [`https://localhost/mgmt/${key}`]: {
        nestedStats: {
          kind: 'tm:ltm:node:nodestats',
          selfLink: link(call, key),
          entries: entries({
            addr: node.address,
            curSessions: all.curSessions,
            monitorStatus: node.forcedDown ? 'forced-down' : node.monitor,
            tmName: node.fullPath,
            ...serverside(all),
            sessionStatus: off ? 'user-disabled' : 'enabled',
            'status.availabilityState': 'unknown',
            'status.enabledState': off ? 'disabled' : 'enabled',
            totRequests: all.totRequests,
          }),
        },
      },
    },
  })
}

function sum(
  call: Call,
  of: readonly (readonly [FakePool, FakeMember])[],
  beside: Counters = NO_COUNTERS,
): Counters {
  const total = { ...beside }
  for (const [pool, member] of of) {
    const shown = call.unit.counters(pool.fullPath, member.fullPath).shown
    total.curConns += shown.curConns
    total.totConns += shown.totConns
    total.totRequests += shown.totRequests
    total.maxConns += shown.maxConns
    total.depth += shown.depth
    total.curSessions += shown.curSessions
  }
  return total
}

function connq(depth: number): Record<string, number> {
  return {
    'connq.ageEdm': 0,
    'connq.ageEma': 0,
    'connq.ageHead': 0,
    'connq.ageMax': 0,
    'connq.depth': depth,
    'connq.serviced': 0,
  }
}

function prefixed(
  prefix: string,
  fields: Readonly<Record<string, number>>,
): Record<string, number> {
  return Object.fromEntries(
    Object.entries(fields).map(([key, value]) => [key.replace('connq', prefix), value]),
  )
}

function serverside(counters: Counters): Record<string, number> {
  return {
    'serverside.bitsIn': counters.totRequests * 4_096,
    'serverside.bitsOut': counters.totRequests * 65_536,
    'serverside.curConns': counters.curConns,
    'serverside.maxConns': counters.maxConns,
    'serverside.pktsIn': counters.totRequests * 8,
    'serverside.pktsOut': counters.totRequests * 12,
    'serverside.totConns': counters.totConns,
  }
}
