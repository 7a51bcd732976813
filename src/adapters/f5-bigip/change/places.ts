import type { AdminState, CallContext, Change, Json } from '../../../provider/contract.js'
import type { MemberRow, Members } from '../codec/members.js'
import { isPossible, memberPath, nodePath } from '../codec/names.js'
import type { Device } from '../session/device.js'
import { readNodes } from '../read/nodes.js'
import { readMembers } from '../read/read.js'
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
  { resolver }: Site,
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
  const members = await lists.members(device, pool, ctx)
  const found = members && resolver.find(members, target)
  if (found === undefined) return []
  return (found.row.template ? found.ephemerals : [found.row]).map((row) => ({ pool, row }))
}

/** Member lists of one look: each pool of each unit is read once, or many in one list. */
export class Lists {
  readonly #site: Site
  readonly #targets: readonly MemberTarget[]
  readonly #read = new Map<string, Members | undefined>()
  readonly #listed = new Set<Device>()

  constructor(site: Site, changes: readonly Change[]) {
    this.#site = site
    this.#targets = changes.flatMap((change) => {
      const target = toTarget(change.ref, site.resolver.partition)
      return target.kind === 'member' ? target : []
    })
  }

  /**
   * The members of a pool, as far as their rows can be read.
   *
   * @throws `MALFORMED_REPLY` where a target is not among them, and a row that can't be read may be it
   */
  async members(
    device: Device,
    pool: string,
    ctx: CallContext,
  ): Promise<readonly MemberRow[] | undefined> {
    if (!isPossible(pool)) return undefined
    const found = await this.#find(device, pool, ctx)
    const [odd] = found?.odd ?? []
    if (found !== undefined && odd !== undefined && !this.#isWhole(pool, found.rows)) throw odd
    return found?.rows
  }

  async #find(device: Device, pool: string, ctx: CallContext): Promise<Members | undefined> {
    const key = `${device.host} ${pool}`
    const pools = new Set(this.#targets.map((target) => target.pool)).size
    if (!this.#listed.has(device) && device.listPays(pools)) await this.#list(device, ctx)
    if (this.#read.has(key)) return this.#read.get(key)
    const members = await readMembers(device, pool, (rows) => this.#isWhole(pool, rows), ctx)
    this.#read.set(key, members)
    return members
  }

  /** One list of a unit; what it lacks is read by itself. */
  async #list(device: Device, ctx: CallContext): Promise<void> {
    this.#listed.add(device)
    for (const { pool, members } of await device.listPools(ctx)) {
      if (!this.#isWhole(pool.fullPath, members.rows)) continue
      this.#read.set(`${device.host} ${pool.fullPath}`, members)
    }
  }

  #isWhole(pool: string, members: readonly MemberRow[]): boolean {
    return this.#targets
      .filter((target) => target.pool === pool)
      .every((target) => this.#site.resolver.find(members, target) !== undefined)
  }
}
