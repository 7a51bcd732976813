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
import type { Place, Site } from './places.js'
import { PROVIDER, uncertain } from '../session/session.js'
import type { Target } from '../read/target.js'

/** Takes a member out of its pool, on every unit that has it. */
export async function remove(
  change: Change,
  target: Target,
  places: readonly Place[],
  ctx: CallContext,
): Promise<ChangeOutcome> {
  if (target.kind === 'node') throw unsupported(change, 'a node is removed with its last member')
  const devices = new Map(places.map((place) => [place.device, place.parts[0].path]))
  return onEach(change, 'removed', [...devices.keys()], ctx, async (device) => {
    const path = devices.get(device)
    if (path !== undefined) await removeOne(change, device, path, ctx)
    return 'applied'
  })
}

async function removeOne(
  change: Change,
  device: Device,
  path: string,
  ctx: CallContext,
): Promise<void> {
  const meaning = await device.session.ask({ method: 'DELETE', path }, ctx)
  if (meaning.kind === 'ok') return
  if (meaning.kind !== 'absent') {
    throw uncertain(device.session.toError(meaning, `DELETE ${path}`), meaning.kind)
  }
  await caught(
    ctx,
    () => device.confirmReady(ctx),
    (error) => {
      throw uncertain(error, 'later')
    },
  )
  if ((await device.session.get(path, ctx)) === undefined) return
  throw new DrainableError(
    'CONFLICT',
    `${formatRef(change.ref)} is there, although ${device.host} answered its removal with "${device.session.clean(meaning.message)}"`,
    { provider: PROVIDER },
  )
}

/** Puts a member into its pool, on every active unit. */
export async function add(
  site: Site,
  target: Target,
  change: ChangeOf<'add'>,
  ctx: CallContext,
): Promise<ChangeOutcome> {
  const { ref, address, port, weight } = change
  if (target.kind === 'node') throw unsupported(change, 'a node is made with its first member')
  const { pool } = target
  const named = toFullPath(ref.member, partitionOf(pool))
  const parts = splitMember(named)
  const separator = address.includes(':') ? '.' : ':'
  const full =
    parts?.port === port ? named : toFullPath(`${address}${separator}${port}`, partitionOf(pool))
  if (!isPossible(full) || !isPossible(pool)) {
    const words = `${formatRef(ref)} is not a valid member name`
    throw refusal('INVALID_OPTIONS', words, { provider: PROVIDER, ref })
  }
  const ratio = weight === undefined ? {} : { ratio: weight }
  const path = membersPath(pool)
  const ask = async (device: Device, named: string): Promise<Meaning | 'unchanged'> => {
    const body = { name: lastPart(named), partition: partitionOf(named), address, ...ratio }
    const meaning = await device.session.ask({ method: 'POST', path, body }, ctx)
    // It was asked for before, or units sync by themselves and the one before has brought it here
    const exists = meaning.kind === 'exists'
    const isThere = exists && (await hasAddress(device, memberPath(pool, named), address, ctx))
    return isThere ? 'unchanged' : meaning
  }
  return onEach(change, 'added', site.devices, ctx, async (device) => {
    let answer = await ask(device, full)
    if (answer !== 'unchanged' && (answer.kind === 'exists' || answer.kind === 'refused')) {
      const other = await otherName(device, full, change, ctx)
      if (other !== undefined) answer = await ask(device, other)
    }
    if (answer === 'unchanged') return answer
    if (answer.kind === 'ok') return 'applied'
    throw uncertain(device.session.toError(answer, `POST ${path}`), answer.kind)
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
  if (its !== undefined) {
    const separator = lastPart(its.fullPath).includes(':') ? '.' : ':'
    return its.fullPath === node ? undefined : `${its.fullPath}${separator}${port}`
  }
  const isTaken = nodes.some(({ fullPath }) => fullPath === node)
  return isTaken ? freeName(full, { address, port }) : undefined
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
async function onEach(
  { ref }: Change,
  verb: 'added' | 'removed',
  devices: readonly Device[],
  ctx: CallContext,
  work: (device: Device) => Promise<'applied' | 'unchanged'>,
): Promise<ChangeOutcome> {
  const done: string[] = []
  let status: 'applied' | 'unchanged' = devices.length === 0 ? 'applied' : 'unchanged'
  for (const device of devices) {
    try {
      if ((await work(device)) === 'applied') status = 'applied'
      done.push(device.host)
    } catch (error) {
      if (ctx.signal.aborted || !isDrainableError(error) || done.length === 0) throw error
      const message = `${formatRef(ref)} was ${verb} at ${done.join(', ')}, but not at ${device.host}: ${error.message}`
      const { code, retryable } = error
      return {
        status: 'unknown',
        error: new DrainableError(code, message, {
          provider: PROVIDER,
          ref,
          retryable,
          cause: error,
        }),
      }
    }
  }
  return { status }
}

function unsupported({ ref, kind }: Change, instead: string): DrainableError {
  const words = `${formatRef(ref)}: ${kind} is not done for nodes, ${instead}`
  return refusal('UNSUPPORTED', words, { provider: PROVIDER, ref })
}
