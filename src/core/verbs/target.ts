import * as z from 'zod'
import type { AddressTarget, MemberRef, Reading, Snapshot } from '../../provider/contract.js'
import { canonicalAddress } from '../../provider/address.js'
import { DrainableError } from '../../provider/error.js'
import { formatRef, refKey } from '../../provider/member-ref.js'
import { once } from '../../provider/once.js'
import { quote } from '../../provider/quote.js'
import type { SeenLook } from '../runner/look/look.js'
import { readingsOf } from '../runner/look/readings.js'

/** What a caller points at: a member, members, an address in every pool, or a whole pool. */
export type Target =
  | MemberRef
  | readonly MemberRef[]
  | AddressTarget
  | { readonly pool: string; readonly balancer?: string }

/** The schemas of each shape of a target. */
const schemas = once(() => {
  const name = z
    .string()
    .min(1)
    .regex(/^\P{Cc}*$/u, 'expected no control characters')
  const balancer = name.exactOptional()
  const port = z.number().int().min(1).max(65_535).exactOptional()
  const ref = z.strictObject({ pool: name, member: name, balancer })
  return {
    ref,
    list: z.array(ref).min(1),
    address: z.strictObject({ address: name, port, balancer }),
    pool: z.strictObject({ pool: name, balancer }),
  }
})

/** One look for many targets, and which member each of them is meant to be. */
export interface PlannedTarget {
  readonly look: SeenLook
  readonly identity: string | undefined
}

/** A target, checked. */
export type ResolvedTarget =
  | {
      readonly kind: 'members'
      readonly refs: readonly MemberRef[]
      /** Where others decided about the members: what they were told, so that it is not looked for again. */
      readonly planned?: PlannedTarget
    }
  | {
      readonly kind: 'filter'
      readonly matches: (reading: Reading) => boolean
      readonly text: string
      /** Where it is an address: a provider may find it without a look at everything. */
      readonly address?: AddressTarget
    }

/**
 * Checks a target.
 *
 * @throws `INVALID_OPTIONS` saying which shapes there are
 */
export function parseTarget(target: Target, subject: string): ResolvedTarget {
  if (Array.isArray(target)) {
    const list = schemas().list.safeParse(target)
    if (list.success) return { kind: 'members', refs: unique(list.data) }
    throw invalid(subject, list.error.issues[0])
  }
  const given = Object(target) as object
  const one = schemas().ref.safeParse(target)
  if (one.success) return { kind: 'members', refs: [one.data] }
  const address = schemas().address.safeParse(target)
  if (address.success) {
    const { data } = address
    refusePort(data.address, subject)
    const wished = canonicalAddress(data.address)
    return {
      kind: 'filter',
      address: data,
      text:
        data.port === undefined
          ? `address ${data.address}`
          : `address ${data.address} port ${data.port}`,
      matches: (reading) =>
        reading.present &&
        reading.address !== undefined &&
        canonicalAddress(reading.address) === wished &&
        (data.port === undefined || reading.port === data.port) &&
        (data.balancer === undefined || reading.ref.balancer === data.balancer),
    }
  }
  const pool = schemas().pool.safeParse(target)
  if (pool.success) {
    const { data } = pool
    return {
      kind: 'filter',
      text: `pool ${data.pool}`,
      matches: (reading) =>
        reading.present &&
        reading.ref.pool === data.pool &&
        (data.balancer === undefined || reading.ref.balancer === data.balancer),
    }
  }
  const issue = ('address' in given ? address : 'member' in given ? one : pool).error.issues[0]
  throw invalid(subject, issue)
}

function invalid(
  subject: string,
  issue: { path: readonly PropertyKey[]; message: string } | undefined,
): DrainableError {
  const where = issue === undefined || issue.path.length === 0 ? '' : `${issue.path.join('.')}: `
  return new DrainableError(
    'INVALID_OPTIONS',
    `${subject}: target: ${where}${issue?.message.replace(/^Invalid input: /, '') ?? 'not understood'}; expected { pool, member }, a list of those, { address, port? } or { pool }`,
  )
}

/** An address and a port in one text hit nothing, and would be looked for in vain. */
function refusePort(address: string, subject: string): void {
  const [, host, port] = /^([^:/@]+|\[[^\]]+\]):(\d{1,5})$/.exec(address) ?? []
  if (host === undefined || port === undefined) return
  throw new DrainableError(
    'INVALID_OPTIONS',
    `${subject}: target: address: ${quote(address)} holds a port; give it apart: { address: '${quote(host)}', port: ${port} }`,
  )
}

function unique(refs: readonly MemberRef[]): readonly MemberRef[] {
  return [...new Map(refs.map((ref) => [refKey(ref), ref])).values()]
}

/**
 * The readings a target hits, in a snapshot taken for it.
 *
 * @throws `NOT_FOUND` where nothing is hit, or a member named is not there
 */
export function pick(target: ResolvedTarget, snapshot: Snapshot): readonly Reading[] {
  if (target.kind === 'filter') {
    const hits = snapshot.readings.filter(target.matches)
    if (hits.length > 0) return hits
    throw new DrainableError(
      'NOT_FOUND',
      `no member has ${target.text}, list what there is with select() or check the spelling`,
    )
  }
  const found = readingsOf(snapshot)
  return target.refs.map((ref) => {
    const reading = found.get(refKey(ref))
    if (reading?.present === true) return reading
    const poolKnown = snapshot.pools.some(
      (pool) => pool.pool === ref.pool && pool.balancer === ref.balancer,
    )
    const known = poolKnown ? `pool ${ref.pool} has no such member` : `no such pool or member`
    const hints = reading?.hints ?? []
    throw new DrainableError(
      'NOT_FOUND',
      `${formatRef(ref)} was not found: ${hints.length > 0 ? hints.join('; ') : `${known}, check the spelling`}`,
      { ref },
    )
  })
}
