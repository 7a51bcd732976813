import type { Config, Group, Plain, Vserver } from './config.js'
import type { Dialect, FakeOptions } from './options.js'
import { NitroError } from './reply.js'
import type { Query } from './query.js'
import {
  boundMemberRow,
  boundServiceRow,
  carriedRow,
  groupRow,
  memberRow,
  memberStat,
  nestedStat,
  serverRow,
  serviceRow,
  serviceStat,
  vserverRow,
  vserverStat,
} from './rows.js'

/** How a build answers for many at once. */
export type Bulk = NonNullable<FakeOptions['bulk']>

/** A question about the configuration or the statistics of one partition. */
export interface Ask {
  readonly config: Config
  readonly dialect: Dialect
  /** Undefined: all of them. */
  readonly name: string | undefined
  readonly query: Query
  readonly bulk: Bulk
  readonly memberTotals: NonNullable<FakeOptions['memberTotals']>
}

type Reader = (ask: Ask) => readonly Plain[]

/** What `GET config/<type>` knows of load balancing. */
export const CONFIG_READS: Readonly<Record<string, Reader>> = {
  server: ({ config, name }) => pick(config.servers, name, 'server').map(serverRow),
  service: ({ config, name, dialect }) =>
    pick(config.services, name, 'service').map((one) => serviceRow(one, dialect)),
  servicegroup: ({ config, name, dialect }) =>
    pick(config.groups, name, 'serviceGroupName').map((one) => groupRow(one, dialect)),
  lbvserver: ({ config, name }) =>
    pick(config.vservers, name, 'name').map((one) => vserverRow(config, one)),
  servicegroup_servicegroupmember_binding: (ask) =>
    bound(ask, ask.config.groups, 'serviceGroupName').flatMap((group) =>
      group.members.map((one) => memberRow(group, one, ask.dialect)),
    ),
  servicegroup_binding: (ask) =>
    bound(ask, ask.config.groups, 'serviceGroupName').map((group) => ({
      servicegroupname: group.name,
      ...rowsOf(
        'servicegroup_servicegroupmember_binding',
        group.members.map((one) => memberRow(group, one, ask.dialect)),
      ),
    })),
  lbvserver_service_binding: (ask) =>
    bound(ask, ask.config.vservers, 'name').flatMap((one) => servicesOf(ask.config, one)),
  lbvserver_servicegroup_binding: (ask) =>
    bound(ask, ask.config.vservers, 'name').flatMap((one) =>
      one.groups.map((group) => ({ name: one.name, servicegroupname: group, servicename: group })),
    ),
  lbvserver_servicegroupmember_binding: (ask) =>
    bound(ask, ask.config.vservers, 'name').flatMap((one) => membersOf(ask.config, one)),
  lbvserver_binding: (ask) =>
    bound(ask, ask.config.vservers, 'name').map((one) => ({
      name: one.name,
      ...rowsOf('lbvserver_service_binding', servicesOf(ask.config, one)),
      ...rowsOf('lbvserver_servicegroupmember_binding', membersOf(ask.config, one)),
    })),
  service_binding: (ask) => bound(ask, ask.config.services, 'name').map(({ name }) => ({ name })),
  server_service_binding: (ask) =>
    bound(ask, ask.config.servers, 'name').flatMap((server) =>
      [...ask.config.services.values()]
        .filter(({ entity }) => entity.server === server)
        .map((one) => ({
          ...carriedRow(server, one.servicetype, one.entity),
          servicename: one.name,
        })),
    ),
  server_servicegroup_binding: (ask) =>
    bound(ask, ask.config.servers, 'name').flatMap((server) =>
      [...ask.config.groups.values()].flatMap((group) =>
        group.members
          .filter((one) => one.server === server)
          .map((one) => ({
            ...carriedRow(server, group.servicetype, one),
            servicegroupname: group.name,
          })),
      ),
    ),
  servicegroupbindings: ({ config, query }) => {
    const name = needed(query, 'servicegroupname')
    const [group] = pick(config.groups, name, 'serviceGroupName')
    const bound = [...config.vservers.values()].filter(({ groups }) => groups.includes(name))
    const state = group?.enabled === true ? 'ENABLED' : 'DISABLED'
    return [
      { servicegroupname: name, state },
      ...bound.map((one) => ({ servicegroupname: name, vservername: one.name })),
    ]
  },
  svcbindings: ({ config, query }) => {
    const name = needed(query, 'servicename')
    const [service] = pick(config.services, name, 'name')
    const bound = [...config.vservers.values()].filter(({ services }) =>
      services.some((one) => one.name === name),
    )
    return [
      { servicename: name, ipaddress: service?.entity.server.address, port: service?.entity.port },
      ...bound.map((one) => ({ servicename: name, vservername: one.name })),
    ]
  },
  lbpersistentsessions: ({ config, query }) =>
    [...config.vservers.values()]
      .filter(({ name }) => (query.args.get('vserver') ?? name) === name)
      .flatMap((vserver) =>
        config.boundTo(vserver).flatMap((one) =>
          Array.from({ length: one.load.persistent }, (_, i) => ({
            vserver: vserver.name,
            type: '1',
            srcip: `198.51.100.${i % 250}`,
            destip: one.server.address,
            destport: one.port,
            timeout: '120',
          })),
        ),
      ),
  lbparameter: ({ config }) => [{ retainservicestate: config.retainServiceState ? 'ON' : 'OFF' }],
}

/** What `GET stat/<type>` knows of load balancing. */
export const STAT_READS: Readonly<Record<string, Reader>> = {
  service: ({ config, name }) => pick(config.services, name, 'service').map(serviceStat),
  servicegroup: ({ config, name, query, bulk, memberTotals }) =>
    pick(config.groups, name, 'serviceGroupName').map((group) => ({
      servicegroupname: group.name,
      state: group.enabled ? 'ENABLED' : 'DISABLED',
      servicetype: group.servicetype,
      ...(wantsBindings(query) && (name !== undefined || bulk.stats !== false)
        ? rowsOf(
            'servicegroupmember',
            group.members.map((one) => nestedStat(group, one, memberTotals)),
          )
        : {}),
    })),
  servicegroupmember: ({ config, query, memberTotals }) => {
    const group = pick(config.groups, needed(query, 'servicegroupname'), 'serviceGroupName')[0]
    if (query.args.has('ip') && query.args.has('servername')) {
      throw new NitroError(1092, 'serverName, IP')
    }
    const who = query.args.get('ip') ?? needed(query, 'servername')
    const port = Number(needed(query, 'port').replace('*', '65535'))
    const one = group?.members.find(
      ({ server, port: own }) =>
        own === port &&
        (query.args.has('ip') ? server.address : server.name).toLowerCase() === who.toLowerCase(),
    )
    if (group === undefined || one === undefined) throw new NitroError(258)
    return [memberStat(group, one, memberTotals !== 'nowhere')]
  },
  lbvserver: ({ config, name, query, memberTotals }) =>
    pick(config.vservers, name, 'name').map((one) => ({
      ...vserverStat(config, one),
      ...(wantsBindings(query)
        ? {
            ...rowsOf(
              'service',
              one.services.flatMap(({ name: each }) => {
                const service = config.services.get(each)
                return service ? [serviceStat(service)] : []
              }),
            ),
            ...rowsOf(
              'servicegroupmember',
              one.groups.flatMap((each) => {
                const group = config.groups.get(each)
                return group?.members.map((one) => nestedStat(group, one, memberTotals)) ?? []
              }),
            ),
          }
        : {}),
    })),
}

/** A type's rows under its key; no rows, no key. */
export function rowsOf(type: string, rows: readonly Plain[]): Plain {
  return rows.length === 0 ? {} : { [type]: rows }
}

function pick<T>(from: ReadonlyMap<string, T>, name: string | undefined, argument: string): T[] {
  if (name === undefined) return [...from.values()]
  const found = from.get(name)
  if (found === undefined) throw new NitroError(258, `${argument}, ${name}`)
  return [found]
}

/** Bindings need a name, or the word `bulkbindings`. */
function bound<T>(ask: Ask, from: ReadonlyMap<string, T>, argument: string): T[] {
  if (ask.name !== undefined) return pick(from, ask.name, argument)
  const all = ask.query.words.get('bulkbindings')?.toLowerCase() === 'yes'
  if (!all || ask.bulk.bindings === false) {
    throw new NitroError(1095, argument)
  }
  return [...from.values()]
}

function needed(query: Query, key: string): string {
  const value = query.args.get(key)
  if (value === undefined || value === '') throw new NitroError(1095, key)
  return value
}

function wantsBindings(query: Query): boolean {
  return query.words.get('statbindings')?.toLowerCase() === 'yes'
}

function servicesOf(config: Config, vserver: Vserver): Plain[] {
  return vserver.services.flatMap(({ name, weight }) => {
    const service = config.services.get(name)
    return service ? [boundServiceRow(vserver, service, weight)] : []
  })
}

function membersOf(config: Config, vserver: Vserver): Plain[] {
  return vserver.groups.flatMap((name) => {
    const group: Group | undefined = config.groups.get(name)
    return group?.members.map((one) => boundMemberRow(vserver, group, one)) ?? []
  })
}
