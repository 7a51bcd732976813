import { isIP } from 'node:net'
import type { Config, Group, Plain } from './config.js'
import { Entity } from './entity.js'
import type { FakeOptions } from './options.js'
import { NitroError } from './reply.js'

/** One changing command, already taken out of its envelope. */
export interface Command {
  readonly type: string
  /** `add`, `set`, `delete`, `bind`, `unbind`, or the word of `?action=`. */
  readonly verb: string
  /** From the path. */
  readonly name: string | undefined
  readonly payload: Plain
}

const VALID_NAME = /^[A-Za-z0-9_][A-Za-z0-9_#. :@=-]*$/

/**
 * Carries a command out on the configuration of one partition.
 *
 * @throws NitroError as the appliance refuses it: a key that does not belong there, a value of the
 * wrong kind, something that is not there
 */
export function execute(config: Config, command: Command, options: FakeOptions): void {
  const { type, verb } = command
  const run = COMMANDS[`${type} ${verb}`]
  if (run) {
    run(config, command, options)
    return
  }
  if (/^(lb|lbmonitor|servicegroup_lbmonitor|service_lbmonitor)/.test(type)) return
  throw new NitroError(1240, `${type} ${verb}`)
}

type Run = (config: Config, command: Command, options: FakeOptions) => void

const COMMANDS: Readonly<Record<string, Run>> = {
  'servicegroup disable': (config, { payload }, options) => {
    only(payload, ['servicegroupname', 'servername', 'port', 'delay', 'graceful'])
    const group = groupOf(config, payload)
    const { graceful, delay } = leaving(payload)
    const members = addressed(config, group, payload)
    if (members === undefined) {
      group.enabled = false
      for (const one of group.members) disable(config, one, graceful, delay, group, options)
      return
    }
    refuseDesiredState(group)
    for (const one of members) disable(config, one, graceful, delay, group, options)
  },
  'servicegroup enable': (config, { payload }) => {
    only(payload, ['servicegroupname', 'servername', 'port'])
    const group = groupOf(config, payload)
    const members = addressed(config, group, payload)
    if (members === undefined) group.enabled = true
    else refuseDesiredState(group)
    for (const one of members ?? group.members) enable(config, one)
  },
  'service disable': (config, { payload }, options) => {
    only(payload, ['name', 'delay', 'graceful'])
    const service = found(config.services, text(payload, 'name'), 'name')
    const { graceful, delay } = leaving(payload)
    disable(config, service.entity, graceful, delay, service, options)
  },
  'service enable': (config, { payload }) => {
    only(payload, ['name'])
    enable(config, found(config.services, text(payload, 'name'), 'name').entity)
  },
  'server disable': (config, { payload }, options) => {
    only(payload, ['name', 'delay', 'graceful'])
    const server = found(config.servers, text(payload, 'name'), 'name')
    const { graceful, delay } = leaving(payload)
    server.enabled = false
    for (const { entity, flush, type } of config.carriedBy(server)) {
      leave(config, entity, graceful, delay, flush, type, options)
    }
  },
  'server enable': (config, { payload }) => {
    only(payload, ['name'])
    const server = found(config.servers, text(payload, 'name'), 'name')
    server.enabled = true
    for (const { entity } of config.carriedBy(server)) {
      if (!config.retainServiceState) entity.enabled = true
      config.enter(entity)
    }
  },
  'lbvserver disable': (config, { payload }) => {
    only(payload, ['name'])
    found(config.vservers, text(payload, 'name'), 'name').enabled = false
  },
  'lbvserver enable': (config, { payload }) => {
    only(payload, ['name'])
    found(config.vservers, text(payload, 'name'), 'name').enabled = true
  },
  'server add': (config, { payload }) => {
    const name = valid(text(payload, 'name'))
    if (config.servers.has(name)) throw new NitroError(1335, name)
    const given = payload['ipaddress'] ?? payload['domain']
    if (typeof given !== 'string' || given === '') throw new NitroError(1095, 'IPAddress')
    if (payload['ipaddress'] !== undefined && isIP(given) === 0) {
      throw new NitroError(278, 'ipaddress')
    }
    const server = config.server(name, payload['ipaddress'] === undefined ? '0.0.0.0' : given)
    server.enabled = payload['state'] !== 'DISABLED'
  },
  'server delete': (config, command) => {
    const server = found(config.servers, named(command, 'name'), 'name')
    for (const { entity } of config.carriedBy(server)) entity.drop()
    for (const group of config.groups.values()) {
      const kept = group.members.filter((one) => one.server !== server)
      group.members.splice(0, Infinity, ...kept)
    }
    for (const [name, { entity }] of config.services) {
      if (entity.server === server) config.services.delete(name)
    }
    config.servers.delete(server.name)
  },
  'service add': (config, { payload }) => {
    const name = valid(text(payload, 'name'))
    if (config.services.has(name)) throw new NitroError(273, `name, ${name}`)
    const server = serverFor(config, payload)
    const port = number(payload, 'port', 65_535)
    const { servicetype } = payload
    const extra = without(payload, ['name', 'ip', 'servername', 'port', 'servicetype'])
    const type = typeof servicetype === 'string' ? servicetype : 'HTTP'
    const service = config.addService(name, new Entity(server, port), type, extra)
    if (payload['state'] === 'DISABLED') disable(config, service.entity, false, 0, service, {})
  },
  'service set': (config, command) => {
    const service = found(config.services, named(command, 'name'), 'name')
    if (isFlush(command.payload['downstateflush'])) {
      service.downstateflush = command.payload['downstateflush']
    }
    assign(service.extra, command.payload, ['name', 'ip', 'servername', 'port', 'state'])
  },
  'service delete': (config, command) => {
    const service = found(config.services, named(command, 'name'), 'name')
    service.entity.drop()
    config.services.delete(service.name)
    for (const { services } of config.vservers.values()) {
      const at = services.findIndex(({ name }) => name === service.name)
      if (at >= 0) services.splice(at, 1)
    }
  },
  'servicegroup add': (config, { payload }) => {
    const name = valid(text(payload, 'servicegroupname'))
    if (config.groups.has(name)) throw new NitroError(273, `serviceGroupName, ${name}`)
    const { servicetype } = payload
    const extra = without(payload, ['servicegroupname', 'servicetype', 'state'])
    config.addGroup(name, typeof servicetype === 'string' ? servicetype : 'HTTP', extra)
  },
  'servicegroup set': (config, command) => {
    const group = found(config.groups, named(command, 'servicegroupname'), 'serviceGroupName')
    const { downstateflush, autoscale, weight } = command.payload
    if (isFlush(downstateflush)) group.downstateflush = downstateflush
    if (typeof autoscale === 'string') group.autoscale = autoscale
    if (weight !== undefined) {
      const members = addressed(config, group, command.payload) ?? []
      for (const one of members) one.weight = number(command.payload, 'weight', 100)
      return
    }
    assign(group.extra, command.payload, ['servicegroupname', 'servername', 'port', 'state'])
  },
  'servicegroup delete': (config, command) => {
    const group = found(config.groups, named(command, 'servicegroupname'), 'serviceGroupName')
    for (const one of group.members) one.drop()
    config.groups.delete(group.name)
  },
  'lbvserver add': (config, { payload }) => {
    const name = valid(text(payload, 'name'))
    if (config.vservers.has(name)) throw new NitroError(273, `name, ${name}`)
    const { servicetype } = payload
    const extra = without(payload, ['name', 'servicetype', 'state'])
    config.addVserver(name, typeof servicetype === 'string' ? servicetype : 'HTTP', extra)
  },
  'lbvserver set': (config, command) => {
    const vserver = found(config.vservers, named(command, 'name'), 'name')
    const { trofspersistence, backupvserver } = command.payload
    if (isFlush(trofspersistence)) vserver.trofspersistence = trofspersistence
    if (typeof backupvserver === 'string') vserver.backupvserver = backupvserver
    assign(vserver.extra, command.payload, ['name', 'state'])
  },
  'lbvserver delete': (config, command) => {
    config.vservers.delete(found(config.vservers, named(command, 'name'), 'name').name)
  },
  'lbpersistentsessions clear': (config, { payload }) => {
    only(payload, ['vserver', 'persistenceparameter'])
    const { vserver } = payload
    const meant =
      vserver === undefined
        ? [...config.vservers.values()]
        : [found(config.vservers, text(payload, 'vserver'), 'vserver')]
    for (const one of meant.flatMap((each) => config.boundTo(each))) one.load.persistent = 0
  },
  'lbparameter set': (config, { payload }) => {
    if (payload['retainservicestate'] !== undefined) {
      config.retainServiceState = payload['retainservicestate'] === 'ON'
    }
  },
  'servicegroup_servicegroupmember_binding add': (config, { payload }) => {
    const group = groupOf(config, payload)
    const server = serverFor(config, payload)
    const port = number(payload, 'port', 65_535)
    if (config.member(group, server.name, port)) throw new NitroError(273, server.name)
    const weight = payload['weight'] === undefined ? 1 : number(payload, 'weight', 100)
    const one = new Entity(server, port, weight)
    group.members.push(one)
    if (payload['state'] === 'DISABLED') disable(config, one, false, 0, group, {})
    else if (!group.enabled) config.leave(one, false, 0, true, group.servicetype)
  },
  'servicegroup_servicegroupmember_binding delete': (config, command) => {
    const group = found(config.groups, named(command, 'servicegroupname'), 'serviceGroupName')
    const [one] = addressed(config, group, command.payload) ?? []
    if (one === undefined) throw new NitroError(1095, 'IP')
    one.drop()
    group.members.splice(group.members.indexOf(one), 1)
  },
  'servicegroup_servicegroupmemberlist_binding add': (config, { payload }) => {
    const group = groupOf(config, payload)
    const wanted = Array.isArray(payload['members']) ? (payload['members'] as Plain[]) : []
    const kept = wanted.map((row) => {
      const server = serverFor(config, row)
      const port = number(row, 'port', 65_535)
      return config.member(group, server.name, port) ?? new Entity(server, port)
    })
    for (const one of group.members) if (!kept.includes(one)) one.drop()
    group.members.splice(0, Infinity, ...kept)
  },
  'lbvserver_service_binding add': (config, { payload }) => {
    const vserver = found(config.vservers, text(payload, 'name'), 'name')
    const service = found(config.services, text(payload, 'servicename'), 'serviceName')
    if (vserver.services.some(({ name }) => name === service.name)) throw new NitroError(273)
    const weight = payload['weight'] === undefined ? 1 : number(payload, 'weight', 100)
    vserver.services.push({ name: service.name, weight })
  },
  'lbvserver_service_binding delete': (config, command) => {
    const vserver = found(config.vservers, named(command, 'name'), 'name')
    const service = text(command.payload, 'servicename')
    const at = vserver.services.findIndex(({ name }) => name === service)
    if (at < 0) throw new NitroError(258, `serviceName, ${service}`)
    vserver.services.splice(at, 1)
  },
  'lbvserver_servicegroup_binding add': (config, { payload }) => {
    const vserver = found(config.vservers, text(payload, 'name'), 'name')
    vserver.groups.push(groupOf(config, payload).name)
  },
  'lbvserver_servicegroup_binding delete': (config, command) => {
    const vserver = found(config.vservers, named(command, 'name'), 'name')
    const at = vserver.groups.indexOf(text(command.payload, 'servicegroupname'))
    if (at < 0) throw new NitroError(258)
    vserver.groups.splice(at, 1)
  },
}

function disable(
  config: Config,
  one: Entity,
  graceful: boolean,
  delay: number,
  of: { readonly downstateflush: string; readonly servicetype: string },
  options: FakeOptions,
): void {
  one.enabled = false
  leave(config, one, graceful, delay, of.downstateflush === 'ENABLED', of.servicetype, options)
}

function leave(
  config: Config,
  one: Entity,
  graceful: boolean,
  delay: number,
  flush: boolean,
  type: string,
  options: FakeOptions,
): void {
  if (one.phase === 'trofs' && options.secondDisable === 'refuse') throw new NitroError(257)
  if (one.phase === 'trofs' && options.secondDisable === 'ignore') return
  config.leave(one, graceful, delay, flush, type)
}

function enable(config: Config, one: Entity): void {
  one.enabled = true
  config.enter(one)
}

/** The members a payload names; undefined where it names none, and so means the whole group. */
function addressed(config: Config, group: Group, payload: Plain): Entity[] | undefined {
  const byName = payload['servername']
  const byAddress = payload['ip']
  if (byName !== undefined && byAddress !== undefined) throw new NitroError(1092, 'serverName, IP')
  const who = byName ?? byAddress
  if (who !== undefined && typeof who !== 'string') throw new NitroError(1234, 'serverName')
  if (who === undefined && payload['port'] === undefined) return undefined
  if (who === undefined) throw new NitroError(1093, 'port, serverName')
  if (payload['port'] === undefined) throw new NitroError(1093, 'serverName, port')
  const port = number(payload, 'port', 65_535)
  const one =
    byName === undefined
      ? group.members.find(({ server, port: own }) => server.address === who && own === port)
      : config.member(group, who, port)
  if (one === undefined) throw new NitroError(258, `serverName, ${who}`)
  return [one]
}

function refuseDesiredState(group: Group): void {
  if (group.autoscale === 'API' || group.autoscale === 'DNS') {
    throw new NitroError(257, `autoscale ${group.autoscale}`)
  }
}

function leaving(payload: Plain): { graceful: boolean; delay: number } {
  const graceful = payload['graceful'] ?? 'NO'
  if (graceful !== 'YES' && graceful !== 'NO') throw new NitroError(1097, 'graceful')
  return {
    graceful: graceful === 'YES',
    delay: payload['delay'] === undefined ? 0 : number(payload, 'delay', 2_147_483_647, 0),
  }
}

function only(payload: Plain, keys: readonly string[]): void {
  for (const key of Object.keys(payload)) {
    if (!keys.includes(key)) throw new NitroError(278, key)
  }
}

function text(payload: Plain, key: string): string {
  const value = payload[key]
  if (value === undefined || value === '') throw new NitroError(1095, key)
  if (typeof value !== 'string') throw new NitroError(1234, key)
  return value
}

function named({ name, payload }: Command, key: string): string {
  return name ?? text(payload, key)
}

function number(payload: Plain, key: string, max: number, min = 1): number {
  const given = payload[key]
  if (given === undefined) throw new NitroError(1095, key)
  const value = given === '*' ? 65_535 : Number(given)
  if (!Number.isInteger(value)) throw new NitroError(1097, key)
  if (value > max) throw new NitroError(1108, key)
  if (value < min) throw new NitroError(1109, key)
  return value
}

function groupOf(config: Config, payload: Plain): Group {
  return found(config.groups, text(payload, 'servicegroupname'), 'serviceGroupName')
}

function found<T>(from: ReadonlyMap<string, T>, name: string, argument: string): T {
  const one = from.get(name)
  if (one === undefined) throw new NitroError(258, `${argument}, ${name}`)
  return one
}

function serverFor(
  config: Config,
  payload: Plain,
): { name: string; address: string; enabled: boolean } {
  const byName = payload['servername']
  const byAddress = payload['ip']
  if (byName !== undefined && byAddress !== undefined) throw new NitroError(1092, 'serverName, IP')
  if (typeof byName === 'string' && byName !== '') {
    if (isIP(byName) !== 0) return config.server(byName, byName)
    return found(config.servers, byName, 'serverName')
  }
  if (typeof byAddress !== 'string' || isIP(byAddress) === 0) throw new NitroError(1095, 'IP')
  for (const server of config.servers.values()) if (server.address === byAddress) return server
  return config.server(byAddress, byAddress)
}

function valid(name: string): string {
  if (!VALID_NAME.test(name)) throw new NitroError(1075)
  return name
}

function isFlush(value: unknown): value is 'ENABLED' | 'DISABLED' {
  return value === 'ENABLED' || value === 'DISABLED'
}

function assign(target: Plain, payload: Plain, without: readonly string[]): void {
  for (const [key, value] of Object.entries(payload)) {
    if (!without.includes(key)) target[key] = value
  }
}

function without(payload: Plain, keys: readonly string[]): Plain {
  return Object.fromEntries(Object.entries(payload).filter(([key]) => !keys.includes(key)))
}
