import type { AdminState, CallContext, Change, ChangeResult } from '../../provider/contract.js'
import { DrainableError, isDrainableError } from '../../provider/error.js'
import { formatRef } from '../../provider/member-ref.js'
import { toWords, type MemberRow } from './codec-members.js'
import {
  isPossible,
  lastPart,
  memberPath,
  membersPath,
  nodePath,
  partitionOf,
  splitMember,
  toFullPath,
} from './codec-names.js'
import { deleteConnections } from './connections.js'
import type { Device } from './device.js'
import { isAtLeast, lowest } from './reading.js'
import { PROVIDER, uncertain } from './session.js'
import {
  identityOf,
  membersOfNode,
  toTarget,
  type Found,
  type MemberTarget,
  type Resolver,
  type Target,
} from './target.js'
import { readMembers, statsOf } from './view.js'
import { writeAll, type Write, type Written } from './writes.js'

/** The active units, and the words that names are read by. */
export interface Site {
  readonly devices: readonly Device[]
  readonly resolver: Resolver
}

/** What one change comes to: a result at once, or writes whose outcomes make it. */
type Plan =
  | { readonly change: Change; readonly result: ChangeResult }
  | { readonly change: Change; readonly writes: readonly Write[] }

/** A change whose writes are under way. */
interface Open {
  readonly index: number
  readonly change: Change
  readonly writes: readonly Write[]
  readonly outcomes: Map<Write, Written>
}

/** A member or node on one unit, ready to be written. */
interface Place {
  readonly device: Device
  /** None for a node. */
  readonly pool: string | undefined
  readonly identity: string
  readonly own: AdminState | 'unknown'
  /** Everything that has to be written: one object, or a template and what it made. */
  readonly parts: readonly { readonly path: string; readonly own: AdminState | 'unknown' }[]
  /** Addresses and ports that connections can be cut by. */
  readonly endpoints: readonly { readonly pool: string; readonly row: MemberRow }[]
}

/** Carries out changes, in order where order matters, and says of each what became of it. */
export async function applyAll(
  site: Site,
  changes: readonly Change[],
  ctx: CallContext,
): Promise<readonly ChangeResult[]> {
  const lists = new Lists(site, changes)
  const results: ChangeResult[] = []
  const end = (index: number, result: ChangeResult): void => {
    results[index] = result
    ctx.result?.(index, result)
  }
  const open: Open[] = []
  for (const [index, change] of changes.entries()) {
    const made = await settle(change, ctx, () => plan(site, lists, change, ctx))
    if ('result' in made) end(index, made.result)
    else open.push({ index, change, writes: made.writes, outcomes: new Map() })
  }
  const owners = new Map(open.flatMap((one) => one.writes.map((write) => [write, one] as const)))
  for await (const [write, written] of writeAll([...owners.keys()], ctx)) {
    const one = owners.get(write)
    if (one === undefined) continue
    one.outcomes.set(write, written)
    if (one.outcomes.size === one.writes.length) end(one.index, toResult(one))
  }
  return results
}

/** A refusal or a failure of one change stays with it; an abort ends the call. */
async function settle(change: Change, ctx: CallContext, make: () => Promise<Plan>): Promise<Plan> {
  try {
    return await make()
  } catch (error) {
    if (ctx.signal.aborted || !isDrainableError(error)) throw error
    // What can succeed later may have been carried out, or may still be
    const status = error.retryable ? 'unknown' : 'rejected'
    return { change, result: { ref: change.ref, status, error } }
  }
}

async function plan(site: Site, lists: Lists, change: Change, ctx: CallContext): Promise<Plan> {
  const target = toTarget(change.ref, site.resolver.partition)
  if (change.kind === 'add') return { change, result: await add(site, target, change, ctx) }
  const places = await findPlaces(site, lists, target, ctx)
  const [first] = places
  if (first === undefined) {
    return refuse(change, 'NOT_FOUND', `${formatRef(change.ref)} is not there`)
  }
  if (change.identity !== undefined && change.identity !== first.identity) {
    return refuse(
      change,
      'CONFLICT',
      `${formatRef(change.ref)} is another one now: ${first.identity}, expected ${change.identity}`,
    )
  }
  switch (change.kind) {
    case 'hold':
      return hold(change, places)
    case 'restore':
      return restore(change, places)
    case 'terminate':
      return { change, result: await terminate(change, places, ctx) }
    case 'remove':
      return { change, result: await remove(change, target, places, lists, ctx) }
    default:
      return change satisfies never
  }
}

function hold(change: Extract<Change, { kind: 'hold' }>, places: readonly Place[]): Plan {
  const { ref, to } = change
  const own = lowest(places.map((place) => place.own))
  if (own === 'unknown') {
    return refuse(
      change,
      'CONFLICT',
      `${formatRef(ref)} is in a state that is not known, it is not written over`,
    )
  }
  const writes = places.flatMap(({ device, parts, pool }) =>
    parts
      .filter((part) => !isAtLeast(part.own, to))
      .map((part) => ({ device, path: part.path, words: toWords(to), pool })),
  )
  if (writes.length === 0) return { change, result: { ref, status: 'unchanged' } }
  return { change, writes }
}

function restore(change: Extract<Change, { kind: 'restore' }>, places: readonly Place[]): Plan {
  const { ref, expect, to, native } = change
  const own = lowest(places.map((place) => place.own))
  // A restore that got half way left the rest as it was expected
  const half = own === to && places.some(({ parts }) => parts.some((part) => part.own === expect))
  if (own === to && (!half || to === expect)) {
    return { change, result: { ref, status: 'unchanged' } }
  }
  if (own !== expect && !half) {
    return refuse(
      change,
      'CONFLICT',
      `${formatRef(ref)} is ${own}, expected ${expect}: somebody changed it`,
    )
  }
  const writes = places.flatMap(({ device, parts, pool }) =>
    parts
      .filter((part) => (half ? part.own === expect : part.own !== to))
      .map((part) => ({ device, path: part.path, words: toWords(to, native), pool })),
  )
  return { change, writes }
}

/** Cuts by address and port; the number is what the last statistics showed, an upper bound. */
async function terminate(
  change: Extract<Change, { kind: 'terminate' }>,
  places: readonly Place[],
  ctx: CallContext,
): Promise<ChangeResult> {
  let open = 0
  for (const { device, endpoints } of places) {
    for (const { pool, row } of endpoints) {
      open += statsOf(await device.readStats(pool, ctx), row)?.active ?? 0
    }
    const seen = new Set<string>()
    for (const { row } of endpoints) {
      const key = `${row.address ?? ''} ${row.port}`
      if (seen.has(key)) continue
      seen.add(key)
      await deleteConnections(device, row.address, row.port, ctx)
    }
  }
  return { ref: change.ref, status: 'applied', terminated: open, atMost: true }
}

async function remove(
  change: Change,
  target: Target,
  places: readonly Place[],
  lists: Lists,
  ctx: CallContext,
): Promise<ChangeResult> {
  if (target.kind === 'node') return unsupported(change, 'a node is removed with its last member')
  for (const { device, parts } of places) {
    const [part] = parts
    if (part === undefined) continue
    const meaning = await device.session.ask({ method: 'DELETE', path: part.path }, ctx)
    if (meaning.kind !== 'ok' && meaning.kind !== 'absent') {
      throw uncertain(device.session.toError(meaning, `DELETE ${part.path}`), meaning.kind)
    }
    if (meaning.kind === 'absent') {
      await device.confirmReady(ctx)
      if ((await device.session.get(part.path, ctx)) !== undefined) {
        throw new DrainableError(
          'CONFLICT',
          `${formatRef(change.ref)} is there, although ${device.host} answered its removal with "${device.session.clean(meaning.message)}"`,
          { provider: PROVIDER },
        )
      }
    }
  }
  lists.drop(target.pool)
  return { ref: change.ref, status: 'applied' }
}

async function add(
  site: Site,
  target: Target,
  change: Extract<Change, { kind: 'add' }>,
  ctx: CallContext,
): Promise<ChangeResult> {
  const { ref, address, port, weight } = change
  if (target.kind === 'node') return unsupported(change, 'a node is made with its first member')
  const named = toFullPath(ref.member, partitionOf(target.pool))
  const parts = splitMember(named)
  const separator = address.includes(':') ? '.' : ':'
  const full =
    parts?.port === port
      ? named
      : toFullPath(`${address}${separator}${port}`, partitionOf(target.pool))
  if (!isPossible(full) || !isPossible(target.pool)) {
    return {
      ref,
      status: 'rejected',
      error: new DrainableError(
        'INVALID_OPTIONS',
        `${formatRef(ref)} is no name a member can have`,
        {
          provider: PROVIDER,
          ref,
        },
      ),
    }
  }
  const body = {
    name: lastPart(full),
    partition: partitionOf(full),
    address,
    ...(weight === undefined ? {} : { ratio: weight }),
  }
  for (const device of site.devices) {
    const path = membersPath(target.pool)
    const meaning = await device.session.ask({ method: 'POST', path, body }, ctx)
    if (meaning.kind !== 'ok') {
      throw uncertain(device.session.toError(meaning, `POST ${path}`), meaning.kind)
    }
  }
  return { ref, status: 'applied' }
}

function unsupported(change: Change, instead: string): ChangeResult {
  return {
    ref: change.ref,
    status: 'rejected',
    error: new DrainableError(
      'UNSUPPORTED',
      `${formatRef(change.ref)}: ${change.kind} is not done for nodes, ${instead}`,
      { provider: PROVIDER, ref: change.ref },
    ),
  }
}

function refuse(change: Change, code: 'NOT_FOUND' | 'CONFLICT', message: string): Plan {
  const { ref } = change
  const error = new DrainableError(code, message, { provider: PROVIDER, ref, retryable: false })
  return { change, result: { ref, status: 'rejected', error } }
}

/** All writes done is done; else the worst of them tells. */
function toResult({ change: { ref }, outcomes }: Open): ChangeResult {
  const all = [...outcomes.values()]
  const failed =
    all.find((outcome) => outcome.status === 'unknown') ??
    all.find((outcome) => outcome.status === 'rejected')
  if (failed === undefined || failed.status === 'applied') return { ref, status: 'applied' }
  return { ref, status: failed.status, error: failed.error }
}

async function findPlaces(
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
    parts: rows.map((row) => ({ path: memberPath(pool, row.fullPath), own: row.own })),
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
    parts: [{ path: nodePath(name), own: node.own }],
    endpoints,
  }
}

/** Member lists of one call: each pool of each unit is read once. */
class Lists {
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
