import { isIP } from 'node:net'
import { Entity, type Server } from './entity.js'
import { type FakeConfig, type FakeOptions, splitName, toPool, toSeed } from './options.js'

/** Values of an object that are not computed: kept as they were given. */
export type Plain = Record<string, unknown>

export interface Group {
  readonly name: string
  servicetype: string
  downstateflush: 'ENABLED' | 'DISABLED'
  autoscale: string
  enabled: boolean
  readonly members: Entity[]
  readonly extra: Plain
}

export interface Service {
  readonly name: string
  servicetype: string
  downstateflush: 'ENABLED' | 'DISABLED'
  readonly entity: Entity
  readonly extra: Plain
}

export interface Vserver {
  readonly name: string
  servicetype: string
  trofspersistence: 'ENABLED' | 'DISABLED'
  backupvserver: string | undefined
  enabled: boolean
  readonly services: { readonly name: string; readonly weight: number }[]
  readonly groups: string[]
  readonly extra: Plain
}

/** What one partition of one node holds. */
export class Config {
  readonly servers = new Map<string, Server>()
  readonly groups = new Map<string, Group>()
  readonly services = new Map<string, Service>()
  readonly vservers = new Map<string, Vserver>()
  /** `lbparameter.retainservicestate` */
  retainServiceState = false
  readonly #options: FakeOptions

  constructor(options: FakeOptions, seed: FakeConfig) {
    this.#options = options
    let index = 0
    for (const [name, given] of Object.entries(seed.pools ?? {})) {
      const pool = toPool(given)
      const group = this.addGroup(name, pool.servicetype ?? 'HTTP', {})
      group.downstateflush = pool.downstateflush ?? 'ENABLED'
      group.autoscale = pool.autoscale ?? 'DISABLED'
      for (const member of pool.members) {
        const { server, address, port, weight, health } = toSeed(member, index++, 'member')
        const one =
          pool.autoscale === 'DNS' && this.servers.has(server)
            ? { name: server, address, enabled: true }
            : this.server(server, address)
        group.members.push(new Entity(one, port, weight, health))
      }
    }
    for (const [name, given] of Object.entries(seed.vservers ?? {})) {
      const pool = toPool(given)
      const vserver = this.addVserver(name, pool.servicetype ?? 'HTTP', {})
      vserver.trofspersistence = pool.trofspersistence ?? 'ENABLED'
      vserver.backupvserver = pool.backupvserver
      vserver.groups.push(...(pool.groups ?? []))
      for (const member of pool.members) {
        const { name: service, address, port, weight, health } = toSeed(member, index++, 'service')
        const made =
          this.services.get(service) ??
          this.addService(
            service,
            new Entity(this.server(address, address), port, 1, health),
            pool.servicetype ?? 'HTTP',
            {},
          )
        made.downstateflush = pool.downstateflush ?? 'ENABLED'
        vserver.services.push({ name: service, weight })
      }
    }
  }

  /** The server of that name, made where there is none. */
  server(name: string, address: string): Server {
    const known = this.servers.get(name)
    if (known) return known
    const made: Server = { name, address, enabled: true }
    this.servers.set(name, made)
    return made
  }

  addGroup(name: string, servicetype: string, extra: Plain): Group {
    const group: Group = {
      name,
      servicetype,
      downstateflush: extra['downstateflush'] === 'DISABLED' ? 'DISABLED' : 'ENABLED',
      autoscale: typeof extra['autoscale'] === 'string' ? extra['autoscale'] : 'DISABLED',
      enabled: extra['state'] !== 'DISABLED',
      members: [],
      extra,
    }
    this.groups.set(name, group)
    return group
  }

  addService(name: string, entity: Entity, servicetype: string, extra: Plain): Service {
    const service: Service = {
      name,
      servicetype,
      downstateflush: extra['downstateflush'] === 'DISABLED' ? 'DISABLED' : 'ENABLED',
      entity,
      extra,
    }
    this.services.set(name, service)
    return service
  }

  addVserver(name: string, servicetype: string, extra: Plain): Vserver {
    const vserver: Vserver = {
      name,
      servicetype,
      trofspersistence: extra['trofspersistence'] === 'DISABLED' ? 'DISABLED' : 'ENABLED',
      backupvserver: undefined,
      enabled: extra['state'] !== 'DISABLED',
      services: [],
      groups: [],
      extra,
    }
    this.vservers.set(name, vserver)
    return vserver
  }

  /** A member by server name, or by the address it was bound with, and port. */
  member(group: Group, server: string, port: number): Entity | undefined {
    return group.members.find((one) => same(one.server.name, server) && one.port === port)
  }

  /** Everything that is bound to a virtual server, by services and by groups. */
  boundTo({ services, groups }: Vserver): readonly Entity[] {
    return [
      ...services.flatMap(({ name }) => this.services.get(name)?.entity ?? []),
      ...groups.flatMap((name) => this.groups.get(name)?.members ?? []),
    ]
  }

  /** Everything that a server carries. */
  *carriedBy(server: Server): Generator<{ entity: Entity; flush: boolean; type: string }> {
    for (const each of this.all()) if (each.entity.server === server) yield each
  }

  *all(): Generator<{ entity: Entity; flush: boolean; type: string }> {
    for (const group of this.groups.values()) {
      for (const entity of group.members) {
        yield { entity, flush: group.downstateflush === 'ENABLED', type: group.servicetype }
      }
    }
    for (const service of this.services.values()) {
      const flush = service.downstateflush === 'ENABLED'
      yield { entity: service.entity, flush, type: service.servicetype }
    }
  }

  /** The member or service that a test means: `web/web1:80`, `web/web1` where that is one, `vs/svc1`. */
  find(pool: string, member: string): { entity: Entity; flush: boolean; type: string } | undefined {
    const group = this.groups.get(pool)
    if (group) {
      const { server, port } = splitName(member)
      const fits = group.members.filter(
        (one) =>
          (same(one.server.name, server) || same(one.server.address, server)) &&
          (port === undefined || one.port === port),
      )
      const [entity] = fits
      if (entity && fits.length === 1) {
        return { entity, flush: group.downstateflush === 'ENABLED', type: group.servicetype }
      }
    }
    if (this.vservers.get(pool)?.services.some(({ name }) => name === member) !== true)
      return undefined
    const service = this.services.get(member)
    if (!service) return undefined
    const flush = service.downstateflush === 'ENABLED'
    return { entity: service.entity, flush, type: service.servicetype }
  }

  /** Takes a member or service out of the configuration; what it held is cut. */
  remove(pool: string, member: string): void {
    const found = this.find(pool, member)
    if (!found) return
    found.entity.drop()
    const group = this.groups.get(pool)
    const at = group?.members.indexOf(found.entity) ?? -1
    if (group && at >= 0) group.members.splice(at, 1)
    else {
      this.services.delete(member)
      for (const { services } of this.vservers.values()) {
        const bound = services.findIndex(({ name }) => name === member)
        if (bound >= 0) services.splice(bound, 1)
      }
    }
  }

  tick(): void {
    for (const { entity, flush } of this.all()) {
      entity.tick(flush, entity.load.persistent > 0 && this.honours(entity))
    }
  }

  /** trofsPersistence: whether a virtual server in front, if there is one, lets clients with an entry in. */
  honours(entity: Entity): boolean {
    const front = [...this.vservers.values()].filter((one) => this.boundTo(one).includes(entity))
    return front.length === 0 || front.some((one) => one.trofspersistence === 'ENABLED')
  }

  leave(entity: Entity, graceful: boolean, delay: number, flush: boolean, type: string): void {
    entity.leave({ graceful, delay }, flush, isHttp(type))
  }

  enter(entity: Entity): void {
    entity.enter(this.#options.checkDelay ?? 0)
  }
}

/** Whether requests of many clients share connections to the backend. */
export function isHttp(servicetype: string): boolean {
  return servicetype === 'HTTP' || servicetype === 'SSL'
}

function same(a: string, b: string): boolean {
  return a === b || (isIP(a) !== 0 && a.toLowerCase() === b.toLowerCase())
}
