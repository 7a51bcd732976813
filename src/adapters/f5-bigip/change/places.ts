import type { AdminState, CallContext, Change, Json } from '../../../provider/contract.js'
import type { MemberRow } from '../codec/members.js'
import { isPossible, memberPath, nodePath } from '../codec/names.js'
import type { Device } from '../session/device.js'
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
import { readMembers } from '../read/read.js'

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
  /** Everything that has to be written: one object, or a template and what it made. */
  readonly parts: readonly Part[]
  /** Addresses and ports that connections can be cut by. */
  readonly endpoints: readonly { readonly pool: string; readonly row: MemberRow }[]
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
        : await findMember(site, lists, device, target, ctx)
    if (place !== undefined) places.push(place)
  }
  return places
}

async function findMember(
  site: Site,
  lists: Lists,
  device: Device,
  target: MemberTarget,
  ctx: CallContext,
): Promise<Place | undefined> {
  const { pool } = target
  const members = await lists.members(device, pool, ctx)
  const found: Found | undefined = members && site.resolver.find(members, target)
  if (found === undefined) return undefined
  const rows = [found.row, ...found.ephemerals]
  return {
    device,
    pool,
    identity: identityOf(found.row),
    own: lowest(rows.map((row) => row.own)),
    parts: rows.map(({ fullPath, own, native }) => ({
      path: memberPath(pool, fullPath),
      own,
      native,
    })),
    endpoints: (found.row.template ? found.ephemerals : [found.row]).map((row) => ({ pool, row })),
  }
}

async function findNode(
  device: Device,
  name: string,
  ctx: CallContext,
): Promise<Place | undefined> {
  if (!isPossible(name)) return undefined
  let node = await device.readNode(name, ctx)
  if (node === undefined) {
    await device.confirmReady(ctx)
    node = await device.readNode(name, ctx)
  }
  if (node === undefined) return undefined
  const endpoints = (await device.listPools(ctx)).flatMap(({ pool, members }) =>
    membersOfNode(members, name)
      .filter((row) => !row.template)
      .map((row) => ({ pool: pool.fullPath, row })),
  )
  return {
    device,
    pool: undefined,
    identity: `${node.fullPath} at ${node.address ?? ''}`,
    own: node.own,
    parts: [{ path: nodePath(name), own: node.own, native: node.native }],
    endpoints,
  }
}

/** Member lists of one call: each pool of each unit is read once. */
export class Lists {
  readonly #site: Site
  readonly #targets: readonly Target[]
  readonly #read = new Map<string, readonly MemberRow[] | undefined>()

  constructor(site: Site, changes: readonly Change[]) {
    this.#site = site
    this.#targets = changes.map((change) => toTarget(change.ref, site.resolver.partition))
  }

  async members(
    device: Device,
    pool: string,
    ctx: CallContext,
  ): Promise<readonly MemberRow[] | undefined> {
    const key = `${device.host} ${pool}`
    if (this.#read.has(key)) return this.#read.get(key)
    if (!isPossible(pool)) return undefined
    const wanted = this.#targets.flatMap((target) =>
      target.kind === 'member' && target.pool === pool ? target : [],
    )
    const complete = (members: readonly MemberRow[]): boolean =>
      wanted.every((target) => this.#site.resolver.find(members, target) !== undefined)
    const members = await readMembers(device, pool, complete, ctx)
    this.#read.set(key, members)
    return members
  }

  /** The pool was changed: it is read anew. */
  drop(pool: string): void {
    for (const device of this.#site.devices) this.#read.delete(`${device.host} ${pool}`)
  }
}
