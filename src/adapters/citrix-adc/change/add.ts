import { isIP } from 'node:net'
import type { ChangeOf, ChangeOutcome } from '../../../kit/change.js'
import { leftBehind } from '../../../kit/errors.js'
import { isObject } from '../../../kit/json.js'
import { canonicalAddress } from '../../../provider/address.js'
import type { Change } from '../../../provider/contract.js'
import { formatRef, freeName } from '../../../provider/member-ref.js'
import { addServer, addService, bindMember, bindService, takeBack } from '../codec/membership.js'
import {
  type Command,
  formatMember,
  isName,
  parseMember,
  pathOf,
  type Row,
  rowsOf,
} from '../codec/nitro.js'
import { toTraits, type Traits } from '../codec/rows.js'
import type { Settings } from '../options.js'
import { type Batch, refuse } from './batch.js'

type Add = ChangeOf<'add'>

/** What is bound: a server or a service, made first where there is none. */
interface Bound {
  readonly bind: Command
  readonly made?: { readonly command: Command; readonly undo: Command } | undefined
}

/** Binds a member to its group, or a service to its virtual server. What that takes is made first. */
export async function add(change: Add, batch: Batch): Promise<ChangeOutcome> {
  const { ref } = change
  const group = await rowOf('servicegroup', ref.pool, batch)
  if (group !== undefined) {
    assertNoDesiredState(ref, toTraits(group), batch.means.options)
    return addMember(change, batch)
  }
  if ((await rowOf('lbvserver', ref.pool, batch)) !== undefined) {
    return bind(change, await serviceFor(change, batch), batch)
  }
  const words = `${formatRef(ref)}: there is neither a service group nor a virtual server '${ref.pool}'`
  throw refuse('NOT_FOUND', words, ref)
}

/**
 * By a server's address, or its name. A server stays when its last member is unbound: where one of that name is at
 * another address, the member is bound by another name, and no name blocks an address.
 */
async function addMember(change: Add, batch: Batch): Promise<ChangeOutcome> {
  const { ref, address, port, weight } = change
  const { server, port: named = port } = parseMember(ref.member)
  const isAddress = isIP(server) !== 0
  if (named !== port || (!isAddress && !isName(server))) {
    const words = `${formatRef(ref)} can't be at port ${port}: a member of a group is named 'server:port', by its server's name or address`
    throw refuse('INVALID_OPTIONS', words, ref)
  }
  if (isAddress) {
    if (isAt(server, address))
      return bind(change, { bind: bindMember(ref.pool, server, port, weight) }, batch)
    const words = `${formatRef(ref)} is named by an address, and is to be at another one: ${address}`
    throw refuse('INVALID_OPTIONS', words, ref)
  }
  const known = await rowOf('server', server, batch)
  const isTaken = known !== undefined && !isAt(known.at('ipaddress').word(), address)
  const name = isTaken ? freeName(server, { address, port }) : server
  const other = isTaken ? await rowOf('server', name, batch) : known
  if (other !== undefined) assertAt(change, `server '${name}'`, other)
  const made =
    other === undefined
      ? { command: addServer(name, address), undo: takeBack('server', name) }
      : undefined
  const as = isTaken ? { ...change, ref: { ...ref, member: formatMember(name, port) } } : change
  return bind(as, { bind: bindMember(ref.pool, name, port, weight), made }, batch)
}

/** A service that is there, or one of the type that an earlier reading had. */
async function serviceFor(change: Add, batch: Batch): Promise<Bound> {
  const { ref, address, port, weight, native } = change
  const name = ref.member
  if (!isName(name)) {
    const words = `${formatRef(ref)}: '${name}' can't be the name of a service`
    throw refuse('INVALID_OPTIONS', words, ref)
  }
  const bound = { bind: bindService(ref.pool, name, weight) }
  const known = await rowOf('service', name, batch)
  if (known !== undefined) {
    assertAt(change, `service '${name}'`, known)
    return bound
  }
  const type = isObject(native) ? native['servicetype'] : undefined
  if (typeof type !== 'string' || !/^[A-Z][A-Z0-9_]{0,40}$/.test(type)) {
    const words = `${formatRef(ref)}: there is no service '${name}', and its type is not known: make it, then it can be bound`
    throw refuse('UNSUPPORTED', words, ref)
  }
  const command = addService(name, address, type, port)
  return { ...bound, made: { command, undo: takeBack('service', name) } }
}

/** Makes what is to be bound, and takes it away again where it can't be bound. */
async function bind(change: Add, bound: Bound, batch: Batch): Promise<ChangeOutcome> {
  const send = (way: 'make' | 'bind', command: Command): Promise<ChangeOutcome> =>
    batch.carry({ change, found: undefined, way, command, sent: false })
  const { made } = bound
  const first = made === undefined ? undefined : await send('make', made.command)
  if (first !== undefined && first.status !== 'applied') return first
  const outcome = await send('bind', bound.bind)
  if (outcome.status !== 'rejected' || made === undefined) return outcome
  const back = await send('make', made.undo)
  if (!('error' in back)) return outcome
  const words = `what was made for it could not be taken away: ${back.error.message}`
  return { status: 'unknown', error: leftBehind(outcome.error, words) }
}

/** What is there already is used where it is at the address that was asked for; a server has no port. */
function assertAt({ ref, address, port }: Add, what: string, known: Row): void {
  const found = known.at('ipaddress').word() ?? known.at('ip').word()
  const at = known.at('port').word()
  if (isAt(found, address) && (at === undefined || Number(at) === port)) return
  const where = `${found ?? 'an unknown address'}${at === undefined ? '' : ` port ${at}`}`
  const words = `${formatRef(ref)}: ${what} is there already, at ${where}; nothing was sent`
  throw refuse('CONFLICT', words, ref, false)
}

function isAt(found: string | undefined, address: string): boolean {
  return found !== undefined && canonicalAddress(found) === canonicalAddress(address)
}

async function rowOf(type: string, name: string, batch: Batch): Promise<Row | undefined> {
  if (!isName(name)) return undefined
  const { charge, ctx } = batch
  return rowsOf(await charge.session.get(pathOf('config', type, name), ctx), type)[0]
}

/** Groups whose members another client lists. */
export function assertNoDesiredState(
  ref: Change['ref'],
  { autoscale }: Traits,
  { desiredState }: Settings,
): void {
  if ((autoscale !== 'API' && autoscale !== 'DNS') || desiredState !== 'refuse') return
  const words = `service group '${ref.pool}' has autoscale ${autoscale}: its members are kept by the desired state or by DNS, change it there, or set desiredState: 'try'`
  throw refuse('UNSUPPORTED', words, ref)
}
