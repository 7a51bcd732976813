import type { AdminState, CallContext, Change, Json } from '../../../provider/contract.js'
import type { MemberRow, Members } from '../codec/members.js'
import { isDrainableError } from '../../../provider/error.js'
import { memberPath, nodePath } from '../codec/names.js'
import type { Device } from '../session/device.js'
import { readNodes } from '../read/nodes.js'
import { readPools } from '../read/pools.js'
import { lowest } from '../read/reading.js'
import {
  identityOf,
  membersOfNode,
  toTarget,
  type Found,
  type MemberTarget,
  type Resolver,
  type Target,
} from '../read/target.js'

/** The active units, and the words that names are read by. */
export interface Site {
  readonly devices: readonly Device[]
  readonly resolver: Resolver
}

/** One object on one unit, as it was found. */
export interface Part {
  readonly path: string
  readonly own: AdminState | 'unknown'
  /** Its two words. */
  readonly native: Json
}

/** A member or node on one unit, ready to be written. */
export interface Place {
  readonly device: Device
  /** None for a node. */
  readonly pool: string | undefined
  readonly identity: string
  readonly own: AdminState | 'unknown'
  readonly address: string | undefined
  /** None for a node. */
  readonly port: number | undefined
  /** Everything that has to be written: one object, or a template and then what it made. */
  readonly parts: readonly [Part, ...Part[]]
}

/** An address and port that connections can be cut by, and the pool that the member is in. */
export interface Endpoint {
  readonly pool: string
  readonly row: MemberRow
}

/** The members of the pools that changes are about, by unit and pool. */
export type Lists = ReadonlyMap<Device, ReadonlyMap<string, { readonly members: Members }>>

/** Reads them: each pool of each unit once. */
export async function readLists(
  { devices, resolver }: Site,
  changes: readonly Change[],
  ctx: CallContext,
): Promise<Lists> {
  const targets = changes.flatMap((change) => {
    const target = toTarget(change.ref, resolver.partition)
    return target.kind === 'member' ? target : []
  })
  const wanted = new Map(
    [...Map.groupBy(targets, ({ pool }) => pool)].map(([pool, own]) => [
      pool,
      (rows: readonly MemberRow[]) => own.every((one) => isIn(rows, one, resolver)),
    ]),
  )
  const lists = new Map<Device, ReadonlyMap<string, { readonly members: Members }>>()
  for (const device of devices) lists.set(device, await readPools(device, wanted, ctx))
  return lists
}

/** Whether a target is among these rows; a name that means several is judged by whoever looks it up. */
function isIn(rows: readonly MemberRow[], target: MemberTarget, resolver: Resolver): boolean {
  try {
    return resolver.find(rows, target) !== undefined
  } catch (error) {
    if (!isDrainableError(error, 'INVALID_OPTIONS')) throw error
    return true
  }
}

/**
 * The rows that a target means.
 *
 * @throws `MALFORMED_REPLY` where it is not among them, and one that can't be read may be it
 */
function findRows(
  { resolver }: Site,
  lists: Lists,
  device: Device,
  target: MemberTarget,
): Found | undefined {
  const members = lists.get(device)?.get(target.pool)?.members
  const found = members && resolver.find(members.rows, target)
  const [odd] = members?.odd ?? []
  if (found === undefined && odd !== undefined) throw odd
  return found
}

/** Where a target is, on every active unit that has it. */
export async function findPlaces(
  site: Site,
  lists: Lists,
  target: Target,
  ctx: CallContext,
): Promise<readonly Place[]> {
  const places: Place[] = []
  for (const device of site.devices) {
    const place =
      target.kind === 'node'
        ? await findNode(device, target.node, ctx)
        : findMember(site, lists, device, target)
    if (place !== undefined) places.push(place)
  }
  return places
}

function findMember(
  site: Site,
  lists: Lists,
  device: Device,
  target: MemberTarget,
): Place | undefined {
  const { pool } = target
  const found = findRows(site, lists, device, target)
  if (found === undefined) return undefined
  const toPart = ({ fullPath, own, native }: MemberRow): Part => ({
    path: memberPath(pool, fullPath),
    own,
    native,
  })
  const { row, ephemerals } = found
  const parts: Place['parts'] = [toPart(row), ...ephemerals.map(toPart)]
  const { address, port } = row
  const own = lowest(parts.map((part) => part.own))
  return { device, pool, identity: identityOf(row), own, address, port, parts }
}

async function findNode(
  device: Device,
  name: string,
  ctx: CallContext,
): Promise<Place | undefined> {
  const node = (await readNodes(device, new Set([name]), ctx)).get(name)
  if (node === undefined) return undefined
  const { own, native, address } = node
  const identity = `${node.fullPath} at ${address ?? ''}`
  const parts: Place['parts'] = [{ path: nodePath(name), own, native }]
  return { device, pool: undefined, identity, own, address, port: undefined, parts }
}

/** Addresses and ports behind a target on one unit. */
export async function endpointsOf(
  site: Site,
  lists: Lists,
  device: Device,
  target: Target,
  ctx: CallContext,
): Promise<readonly Endpoint[]> {
  if (target.kind === 'node') {
    const { pools } = await device.overview(0, ctx)
    return pools.flatMap(({ pool, members }) =>
      membersOfNode(members.rows, target.node)
        .filter((row) => !row.template)
        .map((row) => ({ pool: pool.fullPath, row })),
    )
  }
  const { pool } = target
  const found = findRows(site, lists, device, target)
  if (found === undefined) return []
  return (found.row.template ? found.ephemerals : [found.row]).map((row) => ({ pool, row }))
}
