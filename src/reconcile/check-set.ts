import { isIP } from 'node:net'
import { refuse } from '../endpoints/shape.js'
import type { DesiredMember } from '../provider/desired.js'
import { DrainableError } from '../provider/error.js'
import { nearest, quotedList } from '../provider/nearest.js'
import { once } from '../provider/once.js'
import { quote } from '../provider/quote.js'

/**
 * Checks what a plan can't: that each entry means what its caller meant. A member is matched by its address, so one
 * with an address that no balancer shows is taken for gone and removed, before its addition can fail.
 *
 * @throws `INVALID_OPTIONS` with the path
 */
export function checkSet(subject: string, desired: readonly DesiredMember[]): void {
  const named = new Map<string, number>()
  for (let i = 0; i < desired.length; i++) {
    const one = desired[i]
    if (one === undefined) continue
    checkFields(subject, one, i)
    if (one.address === undefined) checkTwice(subject, desired, i, named)
    else if (isIP(one.address) === 0) checkAddress(subject, one.address, i)
  }
}

/** The same set, an address without its brackets: products take IPv6 without them. */
export function copySet(desired: readonly DesiredMember[]): DesiredMember[] {
  return desired.map((one) =>
    one.address?.startsWith('[') === true
      ? { ...one, address: one.address.slice(1, -1) }
      : { ...one },
  )
}

const FIELDS: Readonly<Record<keyof DesiredMember, true>> = {
  pool: true,
  member: true,
  address: true,
  port: true,
  state: true,
  weight: true,
  reason: true,
  serving: true,
  ifAbsent: true,
}
const names = once(() => Object.keys(FIELDS))

/** A typo must not mean the default. */
function checkFields(subject: string, one: DesiredMember, i: number): void {
  for (const key of Object.keys(one)) {
    if (Object.hasOwn(FIELDS, key)) continue
    const meant = nearest(key, names())
    const instead =
      meant === undefined ? `expected one of ${quotedList(names())}` : `did you mean '${meant}'?`
    const words = `desired[${i}] has the unknown field '${quote(key)}', ${instead}`
    throw new DrainableError('INVALID_OPTIONS', `${subject}: ${words}`)
  }
}

/** By address one member may come several times, such as two port names on one number. By name it is a slip. */
function checkTwice(
  subject: string,
  desired: readonly DesiredMember[],
  i: number,
  named: Map<string, number>,
): void {
  const { pool, member = '', state } = desired[i] as DesiredMember
  const key = `${pool}\0${member}`
  const first = named.get(key)
  if (first === undefined) named.set(key, i)
  else if (desired[first]?.state !== state) {
    const words = `desired[${i}] is '${state}' for ${quote(pool)}/${quote(member)}, which desired[${first}] wants as '${desired[first]?.state}'; name each member once`
    throw new DrainableError('INVALID_OPTIONS', `${subject}: ${words}`)
  }
}

const AN_ADDRESS =
  "an IP address such as '10.0.0.7': names are not resolved; without address the name in member decides"

/** An IP address, with a route domain or zone or in brackets too, or the path of a socket. */
function checkAddress(subject: string, address: string, i: number): void {
  if (/^[/@]./.test(address)) return
  const [, inBrackets] = /^\[(.+)\]$/.exec(address) ?? []
  const [, ip = '', zone] = /^([^%]*)(%.*)?$/.exec(inBrackets ?? address) ?? []
  const isWhole = zone === undefined || /^%[^\s%]+$/.test(zone)
  if (isWhole && (inBrackets === undefined ? isIP(ip) !== 0 : isIP(ip) === 6)) return
  refuse(subject, `desired[${i}].address`, address, withoutPort(address) ?? AN_ADDRESS)
}

/** What to write instead of an address with its port. */
function withoutPort(address: string): string | undefined {
  const [, host = '', port] = /^([^:]+|\[[^\]]+\]):(\d{1,5})$/.exec(address) ?? []
  const bare = host.replace(/^\[(.*)\]$/, '$1')
  if (port === undefined || isIP(bare) === 0) return undefined
  return `an IP address without a port: address: '${bare}', port: ${port}`
}
