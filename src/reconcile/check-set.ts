import { isIP } from 'node:net'
import { memberShape } from '../endpoints/to-desired.js'
import { check, refuse, value, type Shape } from '../endpoints/shape.js'
import type { DesiredMember } from '../provider/desired.js'
import { DrainableError } from '../provider/error.js'
import { nearest, quote, quotedList } from '../provider/quote.js'
import { once, readGiven } from '../provider/options.js'

/**
 * Takes in one desired set after another. An object that is frozen is what it was when it was checked, so of a set with 10,000
 * entries only those are checked and copied that are new in it.
 */
export class DesiredSets {
  readonly #subject: string
  readonly #shape: Shape
  #before: readonly DesiredMember[] = []
  /** Where the members of each pool began in it. */
  #starts = new Map<string | undefined, number>()

  constructor(subject: string, pools: readonly string[]) {
    this.#subject = subject
    this.#shape = memberShape(pools)
  }

  /**
   * Checks a set, and what a plan can't: that each entry means what its caller meant. A member is matched by its address,
   * so one with an address that no balancer shows is taken for gone and removed, before its addition can fail.
   *
   * @returns a copy: later changes to the caller's objects have no effect
   * @throws `INVALID_OPTIONS` with the path
   */
  take(desired: readonly DesiredMember[]): readonly DesiredMember[] {
    return readGiven(`${this.#subject}: desired`, () => this.#take(desired))
  }

  #take(desired: readonly DesiredMember[]): readonly DesiredMember[] {
    check(this.#subject, 'desired', desired, value('a list of desired members', Array.isArray))
    const starts = new Map<string | undefined, number>()
    const named = new Map<string, number>()
    let pool: unknown
    let before = 0
    const taken = Array.from(desired, (one: DesiredMember | undefined, i) => {
      if (one?.pool !== pool || i === 0) {
        pool = one?.pool
        starts.set(one?.pool, i)
        before = this.#starts.get(one?.pool) ?? 0
      }
      const known = this.#before[before++]
      return known !== undefined && one === known ? known : this.#checked(desired, i, named)
    })
    this.#before = taken
    this.#starts = starts
    return taken
  }

  #checked(
    desired: readonly DesiredMember[],
    i: number,
    named: Map<string, number>,
  ): DesiredMember {
    const subject = this.#subject
    const one = desired[i] as DesiredMember
    check(subject, `desired[${i}]`, one, this.#shape)
    checkFields(subject, one, i)
    const { address } = one
    if (address === undefined) checkTwice(subject, desired, i, named)
    else if (isIP(address) === 0) checkAddress(subject, address, i)
    // Products take IPv6 without its brackets.
    if (address?.startsWith('[') === true) return { ...one, address: address.slice(1, -1) }
    // By name it is compared with the others of each set.
    return Object.isFrozen(one) && address !== undefined ? one : { ...one }
  }
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
