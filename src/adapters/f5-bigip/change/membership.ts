import type { ChangeOf, ChangeOutcome } from '../../../kit/change.js'
import { caught, refusal } from '../../../kit/errors.js'
import type { CallContext, Change } from '../../../provider/contract.js'
import { DrainableError, isDrainableError } from '../../../provider/error.js'
import { formatRef, freeName } from '../../../provider/member-ref.js'
import { canonicalAddress } from '../../../provider/address.js'
import type { Meaning } from '../codec/errors.js'
import { parseMember, type NodeRow } from '../codec/members.js'
import {
  isPossible,
  lastPart,
  memberPath,
  membersPath,
  partitionOf,
  splitMember,
  toFullPath,
} from '../codec/names.js'
import type { Device } from '../session/device.js'
import type { Place } from './places.js'
import { mayBeDone, PROVIDER } from '../session/session.js'
import type { Target } from '../read/target.js'

/** Takes a member out of its pool, on every unit that has it. */
export async function remove(
  change: Change,
  target: Target,
  places: readonly Place[],
  ctx: CallContext,
): Promise<ChangeOutcome> {
  if (target.kind === 'node') throw unsupported(change, 'a node is removed with its last member')
  return onEach(change, 'removed', places, ctx, async ({ device, parts: [{ path }] }) => {
    const { session } = device
    const meaning = await session.change({ method: 'DELETE', path }, ctx, 'absent')
    if (meaning.kind === 'absent') {
      await caught(
        ctx,
        () => device.confirmReady(ctx),
        (error) => {
          throw mayBeDone(error)
        },
      )
      if ((await session.get(path, ctx)) !== undefined) {
        const words = `${formatRef(change.ref)} is there, although ${device.host} answered its removal with "${session.clean(meaning.message)}"`
        throw new DrainableError('CONFLICT', words, { provider: PROVIDER })
      }
    }
    return 'applied'
  })
}

/** Puts a member into its pool, on every active unit. */
export async function add(
  devices: readonly Device[],
  target: Target,
  change: ChangeOf<'add'>,
  ctx: CallContext,
): Promise<ChangeOutcome> {
  const { ref, address, port, weight } = change
  if (target.kind === 'node') throw unsupported(change, 'a node is made with its first member')
  const { pool } = target
  const named = toFullPath(ref.member, partitionOf(pool))
  const isNamed = splitMember(named)?.port === port
  const full = isNamed ? named : toFullPath(join(address, port), partitionOf(pool))
  if (!isPossible(full) || !isPossible(pool)) {
    const words = `${formatRef(ref)} is not a valid member name`
    throw refusal('INVALID_OPTIONS', words, { provider: PROVIDER, ref })
  }
  const ratio = weight === undefined ? {} : { ratio: weight }
  const path = membersPath(pool)
  const places = devices.map((device) => ({ device }))
  return onEach(change, 'added', places, ctx, async ({ device }) => {
    const { session } = device
    const ask = (name: string, ...known: 'refused'[]): Promise<Meaning> => {
      const body = { name: lastPart(name), partition: partitionOf(name), address, ...ratio }
      return session.change({ method: 'POST', path, body }, ctx, 'exists', ...known)
    }
    let name = full
    let answer = await ask(name, 'refused')
    for (let isOther = false; answer.kind !== 'ok'; isOther = true) {
      // It was asked for before, or units sync by themselves and the one before has brought it here
      const at = memberPath(pool, name)
      if (answer.kind === 'exists' && (await hasAddress(device, at, address, ctx)))
        return 'unchanged'
      const other = isOther ? undefined : await otherName(device, full, change, ctx)
      if (other === undefined) throw session.toError(answer, `POST ${path}`)
      name = other
      answer = await ask(name)
    }
    return 'applied'
  })
}

/**
 * Another name for a member whose node's name, or address, is that of another node: a node stays when its last member is
 * removed, its address can't be changed, and no two nodes have one address (`0107003a`, 11.6 and 13.1).
 */
async function otherName(
  device: Device,
  full: string,
  { address, port }: ChangeOf<'add'>,
  ctx: CallContext,
): Promise<string | undefined> {
  const node = splitMember(full)?.node
  const at = canonicalAddress(address)
  const { nodes } = await device.listNodes(ctx)
  const isAt = (one: NodeRow): boolean =>
    one.address !== undefined && canonicalAddress(one.address) === at
  const its = nodes.find((one) => isAt(one) && !one.ephemeral)
  if (its !== undefined) return its.fullPath === node ? undefined : join(its.fullPath, port)
  const isTaken = nodes.some(({ fullPath }) => fullPath === node)
  return isTaken ? freeName(full, { address, port }) : undefined
}

/** The name of a node's member. */
function join(node: string, port: number): string {
  return `${node}${lastPart(node).includes(':') ? '.' : ':'}${port}`
}

async function hasAddress(
  device: Device,
  path: string,
  address: string,
  ctx: CallContext,
): Promise<boolean> {
  const found = await device.session.get(path, ctx)
  const row = found === undefined ? undefined : parseMember(found)
  return row?.address !== undefined && canonicalAddress(row.address) === canonicalAddress(address)
}

/** One unit after the other. What a unit refuses after another one has done it is no refusal any more. */
async function onEach<P extends { readonly device: Device }>(
  { ref }: Change,
  verb: 'added' | 'removed',
  places: readonly P[],
  ctx: CallContext,
  work: (place: P) => Promise<'applied' | 'unchanged'>,
): Promise<ChangeOutcome> {
  const done: string[] = []
  let status: 'applied' | 'unchanged' = 'unchanged'
  for (const place of places) {
    const { host } = place.device
    try {
      if ((await work(place)) === 'applied') status = 'applied'
      done.push(host)
    } catch (error) {
      if (ctx.signal.aborted || !isDrainableError(error) || done.length === 0) throw error
      const { code, retryable } = error
      const words = `${formatRef(ref)} was ${verb} at ${done.join(', ')}, but not at ${host}: ${error.message}`
      const data = { provider: PROVIDER, ref, retryable, cause: error }
      return { status: 'unknown', error: new DrainableError(code, words, data) }
    }
  }
  return { status }
}

function unsupported({ ref, kind }: Change, instead: string): DrainableError {
  const words = `${formatRef(ref)}: ${kind} is not done for nodes, ${instead}`
  return refusal('UNSUPPORTED', words, { provider: PROVIDER, ref })
}
