import type { Plain } from './config.js'
import { otherOf } from './addresses.js'
import type { FakeOptions } from './options.js'
import { NitroError } from './reply.js'
import { ctime } from './rows.js'

/** What a node says of itself. */
export interface NodeView {
  readonly address: string
  readonly role: 'Primary' | 'Secondary'
  readonly paired: boolean
  readonly peerHeard: boolean
  readonly bootedAt: number
  readonly transitionAt: number
  readonly savedAt: number
  readonly changed: boolean
  readonly partitions: ReadonlyMap<string, unknown>
  readonly options: FakeOptions
}

/** Objects that a client may ask for and that are of no use to a drain: known, and empty. */
const EMPTY = new Set([
  'nsmode',
  'nsip',
  'lbmonitor',
  'lbmonbindings',
  'servicegroup_lbmonitor_binding',
  'service_lbmonitor_binding',
  'servicegroup_servicegroupentitymonbindings_binding',
  'servicegroup_servicegroupmemberlist_binding',
  'gslbservice',
  'gslbvserver',
  'csvserver',
  'systemsession',
  'systemuser_systemgroup_binding',
  'systemgroup_systemcmdpolicy_binding',
  'nslicense',
  'Interface',
  'interface',
  'sslcertkey',
])

/** Statistics that exporters ask for beside those of load balancing. */
const EMPTY_STAT = new Set([
  'Interface',
  'interface',
  'aaa',
  'csvserver',
  'clusternode',
  'gslbservice',
  'gslbvserver',
  'nscapacity',
  'nspartition',
  'protocolhttp',
  'protocolip',
  'protocoltcp',
  'ssl',
  'sslvserver',
  'systemcpu',
  'systemmemory',
  'vpnvserver',
])

/**
 * What one node says of itself.
 *
 * @returns undefined for an unknown type
 */
export function systemRows(
  node: NodeView,
  tree: 'config' | 'stat',
  type: string,
  name: string | undefined,
): readonly Plain[] | undefined {
  if (tree === 'stat') return EMPTY_STAT.has(type) ? [] : STAT[type]?.(node)
  if (EMPTY.has(type)) return []
  if (type === 'systemuser_systemcmdpolicy_binding') return policiesOf(node.options, name)
  const rows = CONFIG[type]?.(node)
  if (rows === undefined || name === undefined) return rows
  const key = type === 'nspartition' ? 'partitionname' : 'id'
  const found = rows.filter((row) => String(row[key]) === name)
  if (found.length === 0) throw new NitroError(258, name)
  return found
}

const STAT: Readonly<Record<string, (node: NodeView) => readonly Plain[]>> = {
  hanode: (node) => [
    {
      hacurstatus: node.paired ? 'YES' : 'NO',
      hacurstate: 'UP',
      hacurmasterstate: node.role,
      transtime: ctime(node.transitionAt),
      hatotpktrx: '0',
      hatotpkttx: '0',
      haerrproptimeout: '0',
      haerrsyncfailure: '0',
    },
  ],
  system: (node) => [
    {
      starttime: ctime(node.bootedAt),
      starttimelocal: ctime(node.bootedAt),
      timesincestart: since(node.bootedAt),
      cpuusagepcnt: 1,
      memusagepcnt: 11,
      numcpus: '2',
    },
  ],
  ns: (node) => [{ starttime: ctime(node.bootedAt), starttimelocal: ctime(node.bootedAt) }],
}

const CONFIG: Readonly<Record<string, (node: NodeView) => readonly Plain[]>> = {
  hanode: (node) => [
    haRow('0', node.address, node.role),
    ...(node.paired ? [haRow('1', otherOf(node.address), otherRole(node))] : []),
  ],
  nsversion: (node) => [
    {
      version: `NetScaler NS${node.options.version ?? '13.1'}: Build 49.13.nc, Date: Jul  3 2023, 10:11:12   (64-bit)`,
      mode: '1',
    },
  ],
  nsfeature: () => [{ lb: true, cs: false, ssl: true, feature: ['LB', 'SSL'] }],
  nsconfig: (node) => [
    {
      ipaddress: node.address,
      netmask: '255.255.255.0',
      lastconfigsavetime: ctime(node.savedAt),
      systemtime: String(Math.floor(Date.now() / 1_000)),
      configchanged: node.changed,
      primaryip: node.role === 'Primary' ? node.address : otherOf(node.address),
    },
  ],
  nspartition: (node) =>
    [...node.partitions.keys()]
      .filter((name) => name !== 'default')
      .map((name, index) => ({ partitionname: name, partitionid: String(index + 1) })),
  nshardware: () => [{ hwdescription: 'drainable fake', sysid: '450000', serialno: 'FAKE' }],
  clusterinstance: (node) =>
    node.options.cluster === undefined
      ? []
      : [{ clid: '1', adminstate: 'ENABLED', operationalstate: 'ENABLED', propstate: 'ENABLED' }],
  clusternode: (node) =>
    node.options.cluster === undefined
      ? []
      : [
          { nodeid: '0', ipaddress: node.address, state: 'ACTIVE', masterstate: 'ACTIVE' },
          { nodeid: '1', ipaddress: '192.0.2.242', state: 'ACTIVE', masterstate: 'ACTIVE' },
        ],
}

/** The command policies that are bound to a user. */
function policiesOf(options: FakeOptions, name: string | undefined): readonly Plain[] {
  if (name === undefined) throw new NitroError(1095, 'userName')
  const { users = {}, username: admin = 'admin' } = options
  const known = Object.hasOwn(users, name) ? users[name] : undefined
  if (known === undefined && name !== admin) throw new NitroError(258, `userName, ${name}`)
  return [{ username: name, policyname: known?.rights ?? 'superuser', priority: '100' }]
}

function otherRole({ role, peerHeard }: NodeView): string {
  if (!peerHeard) return 'UNKNOWN'
  return role === 'Primary' ? 'Secondary' : 'Primary'
}

function haRow(id: string, address: string, state: string): Plain {
  return {
    id,
    name: address,
    ipaddress: address,
    hastatus: 'UP',
    state,
    hasync: 'ENABLED',
    haprop: 'ENABLED',
    hellointerval: '200',
    deadinterval: '3',
  }
}

function since(at: number): string {
  const seconds = Math.floor((Date.now() - at) / 1_000)
  const two = (value: number): string => String(value).padStart(2, '0')
  const days = Math.floor(seconds / 86_400)
  return `${two(days)}:${two(Math.floor(seconds / 3_600) % 24)}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`
}
