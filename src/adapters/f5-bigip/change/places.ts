import type { AdminState, CallContext, Json } from '../../../provider/contract.js'
import type { MemberRow, Members } from '../codec/members.js'
import { memberPath, nodePath } from '../codec/names.js'
import type { Device } from '../session/device.js'
import { readNodes } from '../read/nodes.js'
import { readPools } from '../read/pools.js'
import { lowest } from '../read/reading.js'
import { identityOf, type Resolver, type Target } from '../read/target.js'

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

/** Where targets are on one unit: each pool is read once, and each node. */
export class Places {
  readonly #device: Device
  readonly #resolver: Resolver
  readonly #pools: ReadonlyMap<string, { readonly members: Members }>

  private constructor(
    device: Device,
    resolver: Resolver,
    pools: ReadonlyMap<string, { readonly members: Members }>,
  ) {
    this.#device = device
    this.#resolver = resolver
    this.#pools = pools
  }

  static async read(
    device: Device,
    resolver: Resolver,
    targets: readonly Target[],
    ctx: CallContext,
  ): Promise<Places> {
    return new Places(device, resolver, await readPools(device, resolver.poolsOf(targets), ctx))
  }

  /** Undefined where the unit does not have it. */
  async find(target: Target, ctx: CallContext): Promise<Place | undefined> {
    const device = this.#device
    if (target.kind === 'node') {
      const node = (await readNodes(device, new Set([target.node]), ctx)).get(target.node)
      if (node === undefined) return undefined
      const { own, native, address, fullPath } = node
      const identity = `${fullPath} at ${address ?? ''}`
      const parts: Place['parts'] = [{ path: nodePath(target.node), own, native }]
      return { device, pool: undefined, identity, own, address, port: undefined, parts, rows: [] }
    }
    const { pool } = target
    const members = this.#pools.get(pool)?.members
    const found = members && this.#resolver.findAmong(members, target)
    if (found === undefined) return undefined
    const { row, ephemerals } = found
    const toPart = ({ fullPath, own, native }: MemberRow): Part => ({
      path: memberPath(pool, fullPath),
      own,
      native,
    })
    const parts: Place['parts'] = [toPart(row), ...ephemerals.map(toPart)]
    const rows = [row, ...ephemerals].map((one) => ({ pool, row: one }))
    const own = lowest(parts.map((part) => part.own))
    const { address, port } = row
    return { device, pool, identity: identityOf(row), own, address, port, parts, rows }
  }
}
