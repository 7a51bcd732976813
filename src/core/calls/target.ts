import * as z from 'zod/mini'
import type { AddressTarget, MemberRef, Reading, Snapshot } from '../../provider/contract.js'
import { canonicalAddress } from '../../provider/address.js'
import { DrainableError } from '../../provider/error.js'
import { formatRef, refKey } from '../../provider/member-ref.js'
import { isPromise, once, readGiven, type SchemaIssue } from '../../provider/options.js'
import { formatPath, optionWords } from '../../provider/describe-issue.js'
import { whole } from '../../provider/option-schemas.js'
import { quote } from '../../provider/quote.js'
import { readingsOf, type SeenLook } from '../balancer/look/look.js'
import type { Missing } from '../balancer/look/not-found.js'

/** The target of a call: a member, members, an address in every pool, or a whole pool. */
export type Target =
  | MemberRef
  | readonly MemberRef[]
  | AddressTarget
  | { readonly pool: string; readonly balancer?: string }

const WORDS = { error: optionWords([]) }
const PORT = 'expected a number from 1 to 65535, such as 8080'

/** The schemas of each shape of a target. */
const schemas = once(() => {
  const name = z
    .string()
    .check(z.minLength(1, 'is empty'), z.regex(/^\P{Cc}*$/u, 'expected no control characters'))
  const balancer = z.exactOptional(name)
  const port = z.exactOptional(whole(1, 65_535, PORT))
  const ref = z.strictObject({ pool: name, member: name, balancer })
  return {
    ref,
    list: z.array(ref).check(z.minLength(1, 'is empty')),
    address: z.strictObject({ address: name, port, balancer }),
    pool: z.strictObject({ pool: name, balancer }),
  }
})

/** One shared look for many targets, and the member that each of them stands for. */
export interface PlannedTarget {
  readonly look: SeenLook
  readonly identity: string | undefined
}

/** A checked target. */
export type ResolvedTarget =
  | {
      readonly kind: 'members'
      readonly refs: readonly MemberRef[]
      /** Present if a plan decided about the members: its look, so that they are not searched again. */
      readonly planned?: PlannedTarget
    }
  | {
      readonly kind: 'filter'
      readonly matches: (reading: Reading) => boolean
      /** The names for the message if the target matches nothing. */
      readonly names: Missing
      /** Present for an address: a provider can find its members without a look at everything. */
      readonly address?: AddressTarget
      readonly balancer: string | undefined
    }

/** The members that a target names by itself. */
export function namedRefs(target: ResolvedTarget): readonly MemberRef[] {
  return target.kind === 'members' ? target.refs : []
}

/** A target as a reader names it. */
export function targetWords(target: ResolvedTarget): string {
  if (target.kind === 'members') return target.refs.map(formatRef).join(', ')
  const { names, address } = target
  return names.kind === 'pool' ? `pool ${names.pool}` : `address ${address?.address ?? ''}`
}

/**
 * Checks a target.
 *
 * @throws `INVALID_OPTIONS` listing the allowed shapes
 */
export function parseTarget(target: Target, subject: string): ResolvedTarget {
  return readGiven(`${subject}: target`, () => toResolved(target, subject))
}

function toResolved(target: Target, subject: string): ResolvedTarget {
  if (Array.isArray(target)) {
    const list = schemas().list.safeParse(target, WORDS)
    if (list.success) return { kind: 'members', refs: unique(list.data) }
    const [issue] = list.error.issues
    const at = issue?.path[0]
    const meant = typeof at === 'number' ? meantInList(target[at]) : undefined
    if (meant !== undefined) throw wrong(subject, `[${String(at)}] ${meant}`)
    throw invalid(subject, issue, target)
  }
  const given = Object(target) as object
  const one = schemas().ref.safeParse(target, WORDS)
  if (one.success) return { kind: 'members', refs: [one.data] }
  const address = schemas().address.safeParse(target, WORDS)
  if (address.success) {
    const { data } = address
    refusePort(data.address, subject)
    const wished = canonicalAddress(data.address)
    return {
      kind: 'filter',
      address: data,
      balancer: data.balancer,
      names: { kind: 'address', target: data },
      matches: (reading) =>
        reading.present &&
        reading.address !== undefined &&
        canonicalAddress(reading.address) === wished &&
        (data.port === undefined || reading.port === data.port) &&
        (data.balancer === undefined || reading.ref.balancer === data.balancer),
    }
  }
  const pool = schemas().pool.safeParse(target, WORDS)
  if (pool.success) {
    const { data } = pool
    return {
      kind: 'filter',
      names: { kind: 'pool', pool: data.pool },
      balancer: data.balancer,
      matches: (reading) =>
        reading.present &&
        reading.ref.pool === data.pool &&
        (data.balancer === undefined || reading.ref.balancer === data.balancer),
    }
  }
  const issue = ('address' in given ? address : 'member' in given ? one : pool).error.issues[0]
  throw invalid(subject, issue, target)
}

const SHAPES = 'expected { pool, member }, a list of those, { address, port? } or { pool }'

function invalid(subject: string, issue: SchemaIssue | undefined, target: unknown): DrainableError {
  const said =
    target === undefined ? 'is missing' : issue === undefined ? 'not understood' : inWords(issue)
  return wrong(subject, meantBy(target) ?? `${said}; ${SHAPES}`)
}

function wrong(subject: string, words: string): DrainableError {
  return new DrainableError('INVALID_OPTIONS', `${subject}: target: ${words}`)
}

function inWords(issue: SchemaIssue): string {
  const where = issue.path.length === 0 ? '' : `${formatPath(issue.path)}: `
  return `${where}${issue.message}`
}

/** The products' words for pool, member and address. */
const SYNONYMS: Readonly<Record<string, 'pool' | 'member' | 'address'>> = {
  backend: 'pool',
  cluster: 'pool',
  service: 'pool',
  serviceGroup: 'pool',
  upstream: 'pool',
  server: 'member',
  endpoint: 'member',
  name: 'member',
  host: 'address',
  hostname: 'address',
  ip: 'address',
}

/** What the caller clearly meant, and how to write it. */
function meantBy(target: unknown): string | undefined {
  if (isPromise(target)) return 'is a promise; await it first'
  if (target === 'all') return `'all' is a target of select() alone; ${SHAPES}`
  if (typeof target === 'string') {
    const [, pool, member] = /^([^/]+)\/([^/]+)$/.exec(target) ?? []
    if (pool === undefined || member === undefined)
      return `is a text; ${SHAPES}; 'all' is every member, in select() alone`
    return `is a text; write { pool: '${quote(pool)}', member: '${quote(member)}' }`
  }
  const keys = Object.keys(Object(target) as object)
  if (isReading(target)) return 'is a reading of select(); give its ref'
  if (keys.includes('members')) return "unknown 'members'; write a list: [{ pool, member }, ...]"
  if (keys.includes('address') && (keys.includes('pool') || keys.includes('member')))
    return `an address is looked for in every pool, so it stands without pool and member; ${SHAPES}`
  const words = keys.filter((key) => Object.hasOwn(SYNONYMS, key))
  if (words.length === 0) return undefined
  const renamed = words.map((word) => `'${word}' is called '${SYNONYMS[word] ?? ''}' here`)
  return `${renamed.join(', ')}; ${SHAPES}`
}

/** Does the same for one item of a list. */
function meantInList(item: unknown): string | undefined {
  if (isReading(item))
    return 'is a reading of select(); give the refs: readings.map(({ ref }) => ref)'
  if (schemas().pool.safeParse(item).success || schemas().address.safeParse(item).success)
    return 'is no member; a list has { pool, member } only: give the refs that select() finds for it'
  return meantBy(item)
}

/** What `select()` gives is often passed on as it is. */
function isReading(value: unknown): boolean {
  const { ref, present } = Object(value) as Partial<Reading>
  return typeof ref === 'object' && typeof present === 'boolean'
}

/** Refuses a text that holds more than an address: it would match nothing. */
function refusePort(address: string, subject: string): void {
  const refuse = (words: string): never => {
    throw wrong(subject, `address: ${quote(address)} ${words}`)
  }
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(address))
    refuse("is a URL; give the address and the port apart: { address: '10.0.0.7', port: 8080 }")
  if (/^[0-9a-f.:]+\/\d{1,3}$/i.test(address))
    refuse('is a range, expected one address; list members with select() and give their refs')
  const [, host, port] = /^([^:/@]+|\[[^\]]+\]):(\d{1,5})$/.exec(address) ?? []
  if (host === undefined || port === undefined) return
  refuse(`holds a port; give it apart: { address: '${quote(host)}', port: ${port} }`)
}

function unique(refs: readonly MemberRef[]): readonly MemberRef[] {
  return [...new Map(refs.map((ref) => [refKey(ref), ref])).values()]
}

/**
 * Refuses a target that names a balancer if the provider is one balancer: a member with such a key would be held beside
 * the same member without it.
 *
 * @throws `INVALID_OPTIONS`
 */
export function refuseKey(target: ResolvedTarget): void {
  const keys =
    target.kind === 'members' ? target.refs.map((ref) => ref.balancer) : [target.balancer]
  const key = keys.find((one) => one !== undefined)
  if (key === undefined) return
  throw new DrainableError(
    'INVALID_OPTIONS',
    `target: balancer: '${quote(key)}' is a key of combineProviders(), and this provider is one balancer: leave it out`,
  )
}

/** The members of a snapshot that a target matches, or the part of the target that is missing there. */
export function pick(
  target: ResolvedTarget,
  snapshot: Snapshot,
): { readonly readings: readonly Reading[] } | { readonly missing: Missing } {
  if (target.kind === 'filter') {
    const readings = snapshot.readings.filter(target.matches)
    return readings.length > 0 ? { readings } : { missing: target.names }
  }
  const found = readingsOf(snapshot)
  const readings: Reading[] = []
  for (const ref of target.refs) {
    const reading = found.get(refKey(ref))
    if (reading?.present !== true) return { missing: { kind: 'member', ref } }
    readings.push(reading)
  }
  return { readings }
}
