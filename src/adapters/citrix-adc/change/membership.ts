import type { ChangeOf, ChangeOutcome } from '../../../kit/change.js'
import { caught, leftBehind } from '../../../kit/errors.js'
import { isObject } from '../../../kit/json.js'
import { isIP } from '../../../provider/builtins.js'
import { canonicalAddress } from '../../../provider/address.js'
import type { Change } from '../../../provider/contract.js'
import { formatRef, freeName } from '../../../provider/member-ref.js'
import {
  addServer,
  addService,
  bindMember,
  bindService,
  type Making,
  unbindMember,
  unbindService,
} from '../codec/membership.js'
import { formatMember, isName, parseMember, pathOf, type Row, rowsOf } from '../codec/nitro.js'
import { toTraits } from '../codec/rows.js'
import type { Look, Standpoint } from './look.js'
import { assertNoDesiredState, assertOurs, refuse } from './ours.js'
import type { Order, Written } from './sender.js'

/** Unbinds a member from its group, or a service from its virtual server. */
export async function remove(
  change: ChangeOf<'remove'>,
  found: Standpoint,
  look: Look,
): Promise<ChangeOutcome> {
  const { ref } = change
  const { entry } = found
  assertOurs(change, found, look.shared.settings)
  if (entry.phase === 'in') {
    const words = `${formatRef(ref)} is in service, and an unbind cuts what is on it: hold it first`
    throw refuse('CONFLICT', words, ref, false)
  }
  const { subject } = entry
  const command =
    subject.kind === 'service'
      ? unbindService(ref.pool, subject.name)
      : unbindMember(subject.group, subject.server, subject.port)
  const outcome = await carryOut(change, { command }, look)
  // A service that is bound elsewhere is held there still.
  if (outcome.status === 'applied' && subject.kind === 'member') look.shared.memory.forget(subject)
  return outcome
}

/** Binds a member to its group, or a service to its virtual server. What that takes is made first. */
export async function add(change: ChangeOf<'add'>, look: Look): Promise<ChangeOutcome> {
  const { ref } = change
  const group = isName(ref.pool) ? await rowOf('servicegroup', ref.pool, look) : undefined
  if (group !== undefined) {
    assertNoDesiredState(ref, toTraits(group), look.shared.settings)
    return addMember(change, look)
  }
  const vserver = isName(ref.pool) ? await rowOf('lbvserver', ref.pool, look) : undefined
  if (vserver !== undefined) return addBoundService(change, look)
  const words = `${formatRef(ref)}: there is neither a service group nor a virtual server '${ref.pool}'`
  throw refuse('NOT_FOUND', words, ref)
}

async function addMember(change: ChangeOf<'add'>, look: Look): Promise<ChangeOutcome> {
  const { ref, address, port, weight } = change
  const { server, port: named = port } = parseMember(ref.member)
  const isAddress = isIP(server) !== 0
  if (named !== port || (!isAddress && !isName(server))) {
    const words = `${formatRef(ref)} can't be at port ${port}: a member of a group is named 'server:port', by its server's name or address`
    throw refuse('INVALID_OPTIONS', words, ref)
  }
  if (!isAddress) return addNamed(change, server, look)
  if (canonicalAddress(server) === canonicalAddress(address))
    return carryOut(change, bindMember(ref.pool, server, port, weight), look)
  const words = `${formatRef(ref)} is named by an address, and is to be at another one: ${address}`
  throw refuse('INVALID_OPTIONS', words, ref)
}

/**
 * By a server's name. A server stays when its last member is unbound: where one of that name is at another address, the
 * member is bound by another name, and no name blocks an address.
 */
async function addNamed(
  change: ChangeOf<'add'>,
  wanted: string,
  look: Look,
): Promise<ChangeOutcome> {
  const { ref, address, port, weight } = change
  const found = await rowOf('server', wanted, look)
  const isTaken = found !== undefined && !isAt(found.at('ipaddress').word(), address)
  const server = isTaken ? freeName(wanted, { address, port }) : wanted
  const known = isTaken ? await rowOf('server', server, look) : found
  const named = isTaken
    ? { ...change, ref: { ...ref, member: formatMember(server, port) } }
    : change
  const bound = bindMember(ref.pool, server, port, weight)
  if (known !== undefined) {
    assertAt(named, `server '${server}'`, known.at('ipaddress').word(), address)
    return carryOut(named, bound, look)
  }
  return make(named, addServer(server, address), bound, look)
}

function isAt(found: string | undefined, address: string): boolean {
  return found !== undefined && canonicalAddress(found) === canonicalAddress(address)
}

async function addBoundService(change: ChangeOf<'add'>, look: Look): Promise<ChangeOutcome> {
  const { ref, address, port, weight, native } = change
  const name = ref.member
  if (!isName(name)) {
    const words = `${formatRef(ref)}: '${name}' can't be the name of a service`
    throw refuse('INVALID_OPTIONS', words, ref)
  }
  const bound = bindService(ref.pool, name, weight)
  const known = await rowOf('service', name, look)
  if (known !== undefined) {
    const at = known.at('ipaddress').word() ?? known.at('ip').word()
    assertAt(change, `service '${name}'`, at, address, [known.at('port').word(), port])
    return carryOut(change, bound, look)
  }
  const type = isObject(native) ? native['servicetype'] : undefined
  if (typeof type !== 'string' || !/^[A-Z][A-Z0-9_]{0,40}$/.test(type)) {
    const words = `${formatRef(ref)}: there is no service '${name}', and its type is not known: make it, then it can be bound`
    throw refuse('UNSUPPORTED', words, ref)
  }
  return make(change, addService(name, address, type, port), bound, look)
}

/** What is there already is used where it is at the address that was asked for. */
function assertAt(
  { ref }: Change,
  what: string,
  found: string | undefined,
  address: string,
  [at, port]: readonly [string | undefined, number?] = [undefined],
): void {
  if (isAt(found, address) && (port === undefined || at === undefined || Number(at) === port))
    return
  const where = `${found ?? 'an unknown address'}${at === undefined ? '' : ` port ${at}`}`
  const words = `${formatRef(ref)}: ${what} is there already, at ${where}; nothing was sent`
  throw refuse('CONFLICT', words, ref, false)
}

/** Makes what is to be bound, and takes it away again where it can't be bound. */
async function make(
  change: ChangeOf<'add'>,
  made: Making,
  bound: Making,
  look: Look,
): Promise<ChangeOutcome> {
  const first = await send({ change, ...made }, look)
  if (first !== 'done') return first
  const outcome = await carryOut(change, bound, look)
  if (outcome.status !== 'rejected') return outcome
  const back = await send({ change, command: made.undo }, look)
  if (back === 'done') return outcome
  const words = `what was made for it could not be taken away: ${back.error.message}`
  return { status: 'unknown', error: leftBehind(outcome.error, words) }
}

async function send(order: Order, { shared, charge, ctx }: Look): Promise<Written> {
  const written = await shared.sender.send([order], charge, ctx)
  return (written === 'apart' ? undefined : written[0]) ?? 'done'
}

/** Sends it. Of an answer that was lost a look tells whether it is so, on a node that is in charge still. */
async function carryOut(
  change: ChangeOf<'add' | 'remove'>,
  order: Omit<Order, 'change'>,
  look: Look,
): Promise<ChangeOutcome> {
  const { kind, ref } = change
  const written = await send({ change, ...order }, look)
  if (written === 'done') return { status: 'applied' }
  if (written.status === 'rejected' || written.astray === true) return written
  const isSo = async (): Promise<boolean> => {
    await look.at([ref])
    const shown = (look.of(ref) !== undefined) === (kind === 'add')
    return shown && look.holds()
  }
  return (await caught(look.ctx, isSo, () => false)) ? { status: 'applied' } : written
}

async function rowOf(type: string, name: string, { charge, ctx }: Look): Promise<Row | undefined> {
  return rowsOf(await charge.session.get(pathOf('config', type, name), ctx), type)[0]
}
