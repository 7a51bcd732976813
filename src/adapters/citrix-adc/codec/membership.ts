/**
 * Binding and unbinding. The documentation binds with PUT, the official Go client with POST: each command
 * that binds has the other way beside it, for a build that does not know the first.
 */
import { isIP } from '../../../provider/builtins.js'
import { DrainableError } from '../../../provider/error.js'
import { argsOf, type Command, pathOf } from './nitro.js'

const MEMBERS = 'servicegroup_servicegroupmember_binding'
const SERVICES = 'lbvserver_service_binding'

/** What makes something, and what takes it back. */
export interface Making {
  readonly command: Command
  /** An alternative form that another NITRO client uses. */
  readonly otherwise?: Command
  readonly undo: Command
}

/** Binds a server to a group: by its name, or by its address where that is its name. */
export function bindMember(
  group: string,
  server: string,
  port: number,
  weight: number | undefined,
): Making {
  const who = isIP(server) === 0 ? { servername: server } : { ip: server }
  const row = { servicegroupname: needed(group), ...who, port: neededPort(port) }
  return bind(MEMBERS, row, weight, unbindMember(group, server, port))
}

/** Unbinds one member. Without server and port it is not known what would go. */
export function unbindMember(group: string, server: string, port: number): Command {
  const args = { servername: needed(server), port: String(neededPort(port)) }
  return unbind(MEMBERS, needed(group), args)
}

/** Binds a service to a virtual server. */
export function bindService(vserver: string, service: string, weight: number | undefined): Making {
  const row = { name: needed(vserver), servicename: needed(service) }
  return bind(SERVICES, row, weight, unbindService(vserver, service))
}

/** Unbinds a service from one virtual server; the service itself stays. */
export function unbindService(vserver: string, service: string): Command {
  return unbind(SERVICES, needed(vserver), { servicename: needed(service) })
}

/** Makes a server object. */
export function addServer(name: string, address: string): Making {
  return add('server', { name: needed(name), ipaddress: needed(address) })
}

/** Makes a service. */
export function addService(
  name: string,
  address: string,
  servicetype: string,
  port: number,
): Making {
  const at = { ip: needed(address), port: neededPort(port) }
  return add('service', { name: needed(name), ...at, servicetype: needed(servicetype) })
}

function bind(
  type: string,
  row: Readonly<Record<string, string | number>>,
  weight: number | undefined,
  undo: Command,
): Making {
  const path = pathOf('config', type, undefined, 'warning=yes')
  const body = { [type]: { ...row, ...(weight === undefined ? {} : { weight }) } }
  return { command: { method: 'PUT', path, body }, otherwise: { method: 'POST', path, body }, undo }
}

function unbind(type: string, name: string, args: Readonly<Record<string, string>>): Command {
  const query = `${argsOf('args', args)}&warning=yes`
  return { method: 'DELETE', path: pathOf('config', type, name, query) }
}

function add(
  type: 'server' | 'service',
  row: Readonly<Record<string, string | number>> & { readonly name: string },
): Making {
  const path = pathOf('config', type, undefined, 'warning=yes')
  const undo = { method: 'DELETE', path: pathOf('config', type, row.name, 'warning=yes') } as const
  return { command: { path, body: { [type]: row } }, undo }
}

function needed(name: string): string {
  if (name !== '') return name
  throw new DrainableError('INVALID_OPTIONS', 'a binding without a full name, nothing was sent')
}

function neededPort(port: number): number {
  if (Number.isInteger(port) && port >= 1 && port <= 65_535) return port
  throw new DrainableError('INVALID_OPTIONS', `port ${port} is none, nothing was sent`)
}
