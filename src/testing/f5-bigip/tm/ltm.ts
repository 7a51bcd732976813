import {
  createdMember,
  MEMBER_PROPERTIES,
  readState,
  type FakeMember,
  type FakeNode,
  type FakePool,
  type Switchable,
} from '../device/config.js'
import { collection, link, ok, select, word, type Call } from '../rest/call.js'
import { fromSegment, partitionOf, splitMember, splitPath, toSegment } from '../rest/names.js'
import { configError, notFound, type Answer } from '../rest/replies.js'
import { memberStats, nodeStats, poolStats } from './stats.js'

type Item = Readonly<Record<string, unknown>>

/** `/mgmt/tm/ltm/pool...` */
export function pools(call: Call): Answer | undefined {
  const [, , , poolSegment, sub, memberSegment, last] = call.segments
  if (poolSegment === undefined) return poolCollection(call)
  if (poolSegment === 'members' && sub === 'stats') return memberStats(call, 'Common')
  if (poolSegment === 'stats') return poolStats(call, [...call.unit.config.pools.values()])
  const name = fromSegment(poolSegment)
  const pool = call.unit.config.pools.get(name)
  if (pool === undefined) throw notFound('Pool', name)
  if (sub === undefined) return onePool(call, pool)
  if (sub === 'stats') return poolStats(call, [pool])
  if (sub !== 'members') return undefined
  if (memberSegment === undefined) return memberCollection(call, pool)
  if (memberSegment === 'stats') {
    // 13.1 took an unqualified pool for the pool itself here
    const unqualified = !poolSegment.startsWith('~') && !poolSegment.startsWith('/')
    if (call.lab.options.version === '13.1' && unqualified) return poolStats(call, [pool])
    return memberStats(call, pool)
  }
  const full = fromSegment(memberSegment)
  const parts = splitMember(splitPath(full).name)
  if (parts === undefined) {
    throw configError(400, 'HTML Tag-like Content in the Request URL/Body', 26214401)
  }
  const member = pool.members.get(full)
  if (member === undefined) {
    const node = `${splitPath(full).folder}/${parts.node}`
    throw notFound('Pool Member', `${pool.fullPath} ${node} ${parts.port}`)
  }
  if (last === 'stats') return memberStats(call, pool, member)
  return last === undefined ? oneMember(call, pool, member) : undefined
}

/** `/mgmt/tm/ltm/node...` */
export function nodes(call: Call): Answer | undefined {
  const [, , , segment, last] = call.segments
  const { config } = call.unit
  if (segment === undefined) {
    if (call.method === 'POST') return createNode(call)
    const items = [...config.nodes.values()].map((node) => nodeState(call, node))
    return collection(call, 'tm:ltm:node:nodecollectionstate', 'tm/ltm/node', items)
  }
  const name = fromSegment(segment)
  const node = config.nodes.get(name)
  if (node === undefined) throw notFound('Node', name)
  if (last === 'stats') return nodeStats(call, node)
  switch (call.method) {
    case 'GET':
      return ok(select(call, nodeState(call, node)))
    case 'PUT':
    case 'PATCH':
      if (node.ephemeral) refuseEphemeral(call, `node ${node.fullPath}`)
      write(call, node)
      config.revision += 1
      return ok(nodeState(call, node))
    case 'DELETE':
      for (const pool of config.pools.values()) {
        if ([...pool.members.values()].some((member) => member.node === name)) {
          throw configError(
            400,
            `01070110:3: Node address '${name}' is referenced by a member of pool '${pool.fullPath}'.`,
            3,
          )
        }
      }
      config.nodes.delete(name)
      config.revision += 1
      return { status: 200 }
    default:
      return undefined
  }
}

function poolCollection(call: Call): Answer | undefined {
  const { config } = call.unit
  if (call.method === 'GET') {
    const loaded = call.unit.stage === 'loading' ? [] : [...config.pools.values()]
    const items = loaded.map((pool) => poolState(call, pool))
    return collection(call, 'tm:ltm:pool:poolcollectionstate', 'tm/ltm/pool', items)
  }
  if (call.method !== 'POST') return undefined
  const full = newName(call)
  if (config.pools.has(full)) throw exists(`Pool (${full})`, full)
  const { members } = call.body
  const pool = config.addPool(full, without(call.body, ['name', 'partition', 'members']))
  for (const member of Array.isArray(members) ? (members as unknown[]) : []) {
    addMember(call, pool, typeof member === 'string' ? { name: member } : (member as Item))
  }
  config.revision += 1
  return ok(poolState(call, pool))
}

function onePool(call: Call, pool: FakePool): Answer | undefined {
  switch (call.method) {
    case 'GET':
      return ok(select(call, poolState(call, pool)))
    case 'PUT':
    case 'PATCH': {
      pool.props = { ...pool.props, ...without(call.body, POOL_IDENTITY) }
      pool.generation += 1
      call.unit.config.revision += 1
      return ok(poolState(call, pool))
    }
    case 'DELETE':
      call.unit.config.pools.delete(pool.fullPath)
      call.unit.config.revision += 1
      return { status: 200 }
    default:
      return undefined
  }
}

function memberCollection(call: Call, pool: FakePool): Answer | undefined {
  if (call.method === 'GET') {
    const items = [...pool.members.values()].map((member) => memberState(call, pool, member))
    return collection(
      call,
      'tm:ltm:pool:members:memberscollectionstate',
      `tm/ltm/pool/${toSegment(pool.fullPath)}/members`,
      items,
    )
  }
  if (call.method !== 'POST') return undefined
  const member = addMember(call, pool, call.body)
  call.unit.config.revision += 1
  return ok(memberState(call, pool, member))
}

function oneMember(call: Call, pool: FakePool, member: FakeMember): Answer | undefined {
  switch (call.method) {
    case 'GET':
      return ok(select(call, memberState(call, pool, member)))
    case 'PUT':
    case 'PATCH':
      knownProperties(call.body)
      if (member.ephemeral) refuseEphemeral(call, `pool member ${member.fullPath}`)
      if (member.props['appService'] !== undefined) {
        throw configError(
          400,
          '01071772:3: The application service must be updated using an application management interface',
          3,
        )
      }
      write(call, member)
      member.props = { ...member.props, ...plainProps(call.body) }
      if (member.fqdn !== undefined && !member.ephemeral && call.lab.options.fqdnInherits) {
        for (const other of pool.members.values()) {
          if (other.ephemeral && other.fqdn === member.fqdn) write(call, other)
        }
      }
      call.unit.config.revision += 1
      return ok(memberState(call, pool, member))
    case 'DELETE':
      if (member.ephemeral) {
        throw configError(
          400,
          `01070734:3: Configuration error: ephemeral pool member ${member.fullPath} cannot be deleted`,
          3,
        )
      }
      pool.members.delete(member.fullPath)
      call.unit.config.revision += 1
      return { status: 200 }
    default:
      return undefined
  }
}

function refuseEphemeral(call: Call, what: string): void {
  if (!call.lab.options.ephemeralsRefuse) return
  throw configError(400, `0107189b:3: Cannot modify ephemeral ${what}`, 3)
}

/** Only two words can be written in each field; the words that are read are refused. */
function write(call: Call, to: Switchable): void {
  const session = allowed(call, 'session', ['user-enabled', 'user-disabled'])
  const state = allowed(call, 'state', ['user-up', 'user-down'])
  if (session === 'user-enabled' || session === 'user-disabled') to.session = session
  if (state === 'user-down') to.forcedDown = true
  if (state === 'user-up' && to.forcedDown) {
    to.forcedDown = false
    to.checkedAt = performance.now() + call.lab.options.checkDelay
  }
  to.generation += 1
}

function allowed(call: Call, field: string, words: readonly string[]): string | undefined {
  const value = call.body[field]
  if (value === undefined) return undefined
  if (typeof value === 'string' && words.includes(value)) return value
  const shown = typeof value === 'string' ? value : JSON.stringify(value)
  throw configError(400, `invalid property value "${field}":"${shown}"`)
}

function knownProperties(body: Item): void {
  const strange = Object.keys(body).find((key) => !MEMBER_PROPERTIES.has(key))
  if (strange !== undefined) throw configError(400, `"${strange}" unknown property`, 26214401)
}

const IDENTITY = new Set([
  ...['kind', 'name', 'partition', 'subPath', 'fullPath', 'generation', 'selfLink', 'address'],
  ...['session', 'state', 'ephemeral', 'fqdn', 'nameReference', 'addressReference', 'appService'],
])

const POOL_IDENTITY = [
  ...['kind', 'name', 'partition', 'subPath', 'fullPath', 'generation', 'selfLink'],
  ...['members', 'membersReference'],
]

function without(body: Item, keys: readonly string[]): Item {
  return Object.fromEntries(Object.entries(body).filter(([key]) => !keys.includes(key)))
}

function plainProps(body: Item): Item {
  return Object.fromEntries(Object.entries(body).filter(([key]) => !IDENTITY.has(key)))
}

function addMember(call: Call, pool: FakePool, body: Item): FakeMember {
  knownProperties(body)
  const full = newName({ ...call, body }, partitionOf(pool.fullPath))
  const { folder, name } = splitPath(full)
  const parts = splitMember(name)
  if (parts === undefined) {
    throw configError(400, 'HTML Tag-like Content in the Request URL/Body', 26214401)
  }
  const { node, port } = parts
  if (pool.members.has(full)) {
    const what = `Pool Member (${pool.fullPath} ${folder}/${node} ${port})`
    throw exists(what, full)
  }
  const known = call.unit.config.nodes.get(`${folder}/${node}`)
  const given = typeof body['address'] === 'string' ? body['address'] : undefined
  const address = given ?? known?.address ?? (/^[\d.]+(%\d+)?$|:/.test(node) ? node : undefined)
  if (address === undefined) {
    throw configError(400, `01070734:3: Configuration error: node ${node} has no address`, 3)
  }
  refuseOtherNode(call, `${folder}/${node}`, address)
  return call.unit.config.addMember(pool, createdMember(full, address, body))
}

/** A node keeps its address for life, and shares it with no other one. */
function refuseOtherNode({ unit }: Call, node: string, address: string): void {
  const known = unit.config.nodes.get(node)
  if (known !== undefined && known.address !== address) throw exists(`Node (${node})`, node)
  for (const other of unit.config.nodes.values()) {
    if (known !== undefined || other.address !== address || other.fqdn !== undefined) continue
    throw configError(
      400,
      `0107003a:3: Pool member node (${node}) and existing node (${other.fullPath}) cannot use the same IP Address (${address}).`,
      3,
    )
  }
}

function createNode(call: Call): Answer {
  const full = newName(call)
  const { config } = call.unit
  if (config.nodes.has(full)) throw exists(`Node (${full})`, full)
  const node: FakeNode = {
    fullPath: full,
    address: word(call, 'address') ?? splitPath(full).name,
    ephemeral: false,
    fqdn: undefined,
    session: word(call, 'session') === 'user-disabled' ? 'user-disabled' : 'user-enabled',
    forcedDown: false,
    monitor: 'unchecked',
    checkedAt: 0,
    generation: 1,
  }
  config.nodes.set(full, node)
  config.revision += 1
  return ok(nodeState(call, node))
}

function newName(call: Call, partition = 'Common'): string {
  const name = word(call, 'name')
  if (name === undefined) throw configError(400, 'required property "name" is missing', 26214401)
  if (name.startsWith('/')) return name
  const subPath = word(call, 'subPath')
  const folder = subPath === undefined ? '' : `/${subPath}`
  return `/${word(call, 'partition') ?? partition}${folder}/${name}`
}

function exists(what: string, full: string): Error {
  return configError(
    409,
    `01020066:3: The requested ${what} already exists in partition ${partitionOf(full)}.`,
    3,
  )
}

/** Name, partition and folder of an object, as every reply carries them. */
function naming(fullPath: string): Item {
  const { folder, name } = splitPath(fullPath)
  const [, partition = 'Common', ...sub] = folder.split('/')
  return { name, partition, ...(sub.length === 0 ? {} : { subPath: sub.join('/') }), fullPath }
}

export function poolState(call: Call, pool: FakePool): Item {
  const path = `tm/ltm/pool/${toSegment(pool.fullPath)}`
  const expand = call.query.get('expandSubcollections') === 'true'
  return {
    kind: 'tm:ltm:pool:poolstate',
    ...naming(pool.fullPath),
    generation: pool.generation,
    selfLink: link(call, path),
    ...pool.props,
    membersReference: {
      link: link(call, `${path}/members`),
      isSubcollection: true,
      ...(expand
        ? { items: [...pool.members.values()].map((member) => memberState(call, pool, member)) }
        : {}),
    },
  }
}

export function memberState(call: Call, pool: FakePool, member: FakeMember): Item {
  const path = `tm/ltm/pool/${toSegment(pool.fullPath)}/members/${toSegment(member.fullPath)}`
  return {
    kind: 'tm:ltm:pool:members:membersstate',
    ...naming(member.fullPath),
    generation: member.generation,
    selfLink: link(call, path),
    address: member.address,
    ...member.props,
    ephemeral: String(member.ephemeral),
    fqdn:
      member.fqdn === undefined
        ? { autopopulate: 'disabled' }
        : { autopopulate: 'enabled', tmName: member.fqdn },
    ...readState(member),
  }
}

function nodeState(call: Call, node: FakeNode): Item {
  return {
    kind: 'tm:ltm:node:nodestate',
    ...naming(node.fullPath),
    generation: node.generation,
    selfLink: link(call, `tm/ltm/node/${toSegment(node.fullPath)}`),
    address: node.address,
    connectionLimit: 0,
    dynamicRatio: 1,
    ephemeral: String(node.ephemeral),
    fqdn: {
      addressFamily: 'ipv4',
      autopopulate: node.fqdn === undefined ? 'disabled' : 'enabled',
      downInterval: 5,
      interval: '3600',
      ...(node.fqdn === undefined ? {} : { tmName: node.fqdn }),
    },
    logging: 'disabled',
    monitor: 'default',
    rateLimit: 'disabled',
    ratio: 1,
    ...readState(node),
  }
}
