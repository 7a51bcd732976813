import { memberShape } from '../endpoints/to-desired.js'
import { check, refuse, value, type Shape } from '../endpoints/shape.js'
import { isIP } from '../provider/builtins.js'
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
  readonly #known = new WeakSet<DesiredMember>()

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
    const named = new Map<string, number>()
    return Array.from(desired, (one, i) =>
      this.#known.has(one) ? one : this.#checked(desired, i, named),
    )
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
    if (!Object.isFrozen(one) || address === undefined) return { ...one }
    this.#known.add(one)
    return one
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
const names = /* @__PURE__ */ once(() => Object.keys(FIELDS))

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
