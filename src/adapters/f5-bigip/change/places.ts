import type { AdminState, CallContext, Json } from '../../../provider/contract.js'
import type { MemberRow, Members, NodeRow } from '../codec/members.js'
import { memberPath, nodePath } from '../codec/names.js'
import type { Device } from '../session/device.js'
import { readNodes, readPools } from '../read/unit.js'
import { lowest } from '../read/reading.js'
import { identityOf, type Found, type Resolver, type Target } from '../read/target.js'

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
  /** The members that these are; none for a node. */
  readonly rows: readonly { readonly pool: string; readonly row: MemberRow }[]
}

/** The pools that changes are about, by unit: each is read once. */
export type Lists = ReadonlyMap<Device, ReadonlyMap<string, { readonly members: Members }>>

export async function readLists(
  devices: readonly Device[],
  resolver: Resolver,
  targets: readonly Target[],
  ctx: CallContext,
): Promise<Lists> {
  const wanted = resolver.poolsOf(targets)
  const lists = new Map<Device, ReadonlyMap<string, { readonly members: Members }>>()
  for (const device of devices) lists.set(device, await readPools(device, wanted, ctx))
  return lists
}

/** Where a target is, on every unit that has it. */
export async function findPlaces(
  lists: Lists,
  resolver: Resolver,
  target: Target,
  ctx: CallContext,
): Promise<readonly Place[]> {
  const places: Place[] = []
  for (const [device, pools] of lists) {
    if (target.kind === 'node') {
      const row = (await readNodes(device, new Set([target.node]), ctx)).get(target.node)
      if (row !== undefined) places.push(placeOfNode(device, row))
      continue
    }
    const members = pools.get(target.pool)?.members
    const found = members && resolver.find(members, target)
    if (found !== undefined) places.push(placeOfMember(device, target.pool, found))
  }
  return places
}

function placeOfNode(device: Device, { own, native, address, fullPath }: NodeRow): Place {
  const identity = `${fullPath} at ${address ?? ''}`
  const parts: Place['parts'] = [{ path: nodePath(fullPath), own, native }]
  return { device, pool: undefined, identity, own, address, port: undefined, parts, rows: [] }
}

function placeOfMember(device: Device, pool: string, { row, ephemerals }: Found): Place {
  const toPart = ({ fullPath, own, native }: MemberRow): Part => {
    return { path: memberPath(pool, fullPath), own, native }
  }
  const { address, port } = row
  return {
    device,
    pool,
    identity: identityOf(row),
    own: lowest([row, ...ephemerals].map(({ own }) => own)),
    address,
    port,
    parts: [toPart(row), ...ephemerals.map(toPart)],
    rows: [row, ...ephemerals].map((one) => ({ pool, row: one })),
  }
}
