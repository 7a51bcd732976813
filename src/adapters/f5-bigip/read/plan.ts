import { canonicalAddress } from '../../../provider/address.js'
import type { AddressTarget, CallContext, MemberRef } from '../../../provider/contract.js'
import { formatDuration } from '../../../provider/duration.js'
import { caught } from '../../../kit/errors.js'
import { refKey } from '../../../provider/member-ref.js'
import { partitionOf } from '../codec/names.js'
import type { Settings } from '../options.js'
import type { Device, Overview } from '../session/device.js'
import { listed } from '../../../provider/quote.js'
import { readVirtuals } from './hints.js'
import type { Rights } from './rights.js'
import { NODES } from './target.js'

const VIRTUALS = '/mgmt/tm/ltm/virtual?$select=name,partition,fullPath,pool'
/** Requests of one look at a node. */
const NODE_LOOK = 4
/** The core takes at most one part in that many of the time for looking. */
const SHARE = 5
/** Samples that have to be as far apart as statistics can lag: in force, second, sealed. */
const SAMPLES = 3

/**
 * What is at an address. With a port: the members there. Without: the node, which is the machine in every
 * pool, and beside it the members that are disabled by themselves, so that opening the machine opens them.
 * What an FQDN template made is named member by member, as BIG-IP refuses changes of such nodes.
 *
 * @throws `MALFORMED_REPLY` where nothing was found, and a row that can't be read may be it
 */
export function findAt(
  { address, port }: AddressTarget,
  { pools, nodes, odd }: Overview,
): readonly MemberRef[] {
  const wished = canonicalAddress(address)
  const isHere = (at: string | undefined): boolean =>
    at !== undefined && canonicalAddress(at) === wished
  const here = nodes.filter((node) => port === undefined && isHere(node.address) && !node.ephemeral)
  const covered = new Set(here.map(({ fullPath }) => fullPath))
  const members = pools.flatMap(({ pool, members: { rows } }) =>
    rows
      .filter((row) => isHere(row.address) && (port === undefined || row.port === port))
      .filter((row) => !covered.has(row.node) || row.own !== 'ready')
      .map((row) => ({ pool: pool.fullPath, member: row.fullPath })),
  )
  const found = [...here.map(({ fullPath }) => ({ pool: NODES, member: fullPath })), ...members]
  const [doubt] = [...odd, ...pools.flatMap((one) => one.members.odd)]
  if (found.length === 0 && doubt !== undefined) throw doubt
  return found
}

/** What the refs found at an address hit, how long that takes, and what the user's role does not allow, by ref. */
export async function planOf(
  device: Device,
  refs: readonly MemberRef[],
  { pools, nodes }: Overview,
  settings: Settings,
  rights: Rights,
  ctx: CallContext,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const virtuals = await caught(
    ctx,
    () => readVirtuals(device, VIRTUALS, ctx),
    () => undefined,
  )
  const plans = new Map<string, readonly string[]>()
  const members = refs.filter(({ pool }) => pool !== NODES)
  for (const ref of refs) {
    const isNode = ref.pool === NODES
    const node = nodes.find(({ fullPath }) => fullPath === ref.member)
    const hit = pools.filter(({ pool, members: { rows } }) =>
      isNode ? rows.some((row) => row.node === ref.member) : pool.fullPath === ref.pool,
    )
    const names = hit.map(({ pool }) => pool.fullPath)
    const reached = `${names.length} ${names.length === 1 ? 'pool' : 'pools'}`
    const fronts = names.flatMap((name) => virtuals?.get(name) ?? [])
    plans.set(refKey(ref), [
      ...(isNode
        ? listed(`one change of the node reaches ${reached}`, names)
        : [`one of ${members.length} members that are changed one by one`]),
      ...(virtuals === undefined
        ? ['which virtual servers are in front could not be read']
        : listed(
            'virtual servers in front',
            fronts.map(({ fullPath }) => fullPath),
          )),
      timeOf(device, isNode ? 1 : members.length, settings),
      ...rights.limits(partitionOf(node?.fullPath ?? ref.member)),
    ])
  }
  return plans
}

/** Without traffic: the changes, then samples as far apart as statistics lag, and the looks between. */
function timeOf(
  { session: { spending } }: Device,
  changes: number,
  { freshness, minInterval }: Settings,
): string {
  const pause = Math.max(minInterval, spending.last * NODE_LOOK * SHARE)
  const look = spending.last * NODE_LOOK
  // One to hold each, one to seal it.
  const writes = (2 * changes + 2) * spending.last
  const proof = SAMPLES * (Math.max(freshness, pause) + look) + writes
  return `without traffic it takes about ${formatDuration(Math.ceil(proof / 1_000) * 1_000)} to be proved idle (${2 * changes} changes with the seal, a request ${formatDuration(Math.round(spending.last))}, statistics up to ${formatDuration(freshness)} old)`
}
