import { canonicalAddress, formatAddress } from '../provider/address.js'
import type { PresentReading } from '../provider/contract.js'
import type { DesiredMember } from '../provider/desired.js'

/** Which desired member is which member of one pool. */
interface PoolMatch {
  /** What is wanted of each member found, in the order of the members; undefined: nothing is. */
  readonly wanted: readonly (DesiredMember | undefined)[]
  /** Desired, and not in the balancer. */
  readonly missing: readonly DesiredMember[]
}

/**
 * Matches by address and port; by address alone where either side has no port; by name where a
 * desired member has no address. Where several desired members mean one (two port names on one
 * number), the one that wants most of it counts.
 */
export function matchPool(desired: readonly DesiredMember[], members: PoolMembers): PoolMatch {
  const wanted = new Array<DesiredMember | undefined>(members.count).fill(undefined)
  const missing = new Map<string, DesiredMember>()
  for (const one of desired) {
    const found = members.meantBy(one)
    for (const at of found) wanted[at] = stronger(wanted[at], one)
    if (found.length > 0) continue
    const key = missingKey(one)
    missing.set(key, stronger(missing.get(key), one))
  }
  return { wanted, missing: [...missing.values()] }
}

/** The members of a pool by place and by name, as numbers in its list. */
export class PoolMembers {
  readonly #members: readonly PresentReading[]
  /** Nearly always there is one at an address: a list is made only for the second. */
  readonly #byAddress = new Map<string, number | number[]>()
  /** Of addresses with many members: each port is found at once. */
  readonly #byPort = new Map<string, ReadonlyMap<number, number[]>>()
  /** Most plans ask for no name. */
  #byName: ReadonlyMap<string, number> | undefined
  /** The names that the plan gave to members that it adds. */
  readonly #given = new Set<string>()
  readonly #one: [number] = [0]

  constructor(members: readonly PresentReading[]) {
    this.#members = members
    for (let at = 0; at < members.length; at++) {
      const address = members[at]?.address
      if (address === undefined || address === '') continue
      const key = canonicalAddress(address)
      const there = this.#byAddress.get(key)
      if (there === undefined) this.#byAddress.set(key, at)
      else if (typeof there === 'number') this.#byAddress.set(key, [there, at])
      else there.push(at)
    }
  }

  get count(): number {
    return this.#members.length
  }

  /** Those that a desired member means. Good until the next call. */
  meantBy({ address, port, member }: DesiredMember): readonly number[] {
    if (address === undefined) return this.#named(member)
    const key = canonicalAddress(address)
    const there = this.#byAddress.get(key)
    if (there === undefined) return NONE
    if (typeof there === 'number') {
      if (port !== undefined && !this.#fits(there, port)) return NONE
      this.#one[0] = there
      return this.#one
    }
    if (port === undefined) return there
    if (there.length <= FEW) return there.filter((at) => this.#fits(at, port))
    const ports =
      this.#byPort.get(key) ?? Map.groupBy(there, (at) => this.#members[at]?.port ?? ANY_PORT)
    this.#byPort.set(key, ports)
    return [...(ports.get(port) ?? NONE), ...(ports.get(ANY_PORT) ?? NONE)]
  }

  #fits(at: number, wanted: number): boolean {
    const { port = ANY_PORT } = this.#members[at] ?? {}
    return port === wanted || port === ANY_PORT
  }

  #named(name = ''): readonly number[] {
    const at = this.#names().get(name)
    return at !== undefined && this.#members[at]?.ref.member === name ? [at] : NONE
  }

  /**
   * Who has a name already, also where the product lists it with more: BIG-IP has `web` as `/Common/web:80`, NetScaler
   * as `web:80`.
   */
  holderOf(name: string): string | undefined {
    const at = this.#names().get(name)
    if (at === undefined) return this.#given.has(name) ? 'another one that is added' : undefined
    const { address = '', port } = this.#members[at] ?? {}
    return address === '' ? UNKNOWN_PLACE : `a member at ${formatAddress(address, port)}`
  }

  give(name: string): void {
    this.#given.add(name)
  }

  /** Whole names, and where none is like that, what a member may also be called. */
  #names(): ReadonlyMap<string, number> {
    return (this.#byName ??= new Map([
      ...this.#members.flatMap(({ ref, port }, at) => shorterNames(ref.member, port, at)),
      ...this.#members.map(({ ref }, at): [string, number] => [ref.member, at]),
    ]))
  }
}

const NONE: readonly number[] = []
const FEW = 4
/** HAProxy's own word for a server without a port: the client's is used. */
const ANY_PORT = 0
/** Who has a name, but no address that is known. */
export const UNKNOWN_PLACE = 'a member at an unknown address'

/** What a member may also be called: without the partition before its name, and without the port behind it. */
function shorterNames(member: string, port: number | undefined, at: number): [string, number][] {
  const last = member.slice(member.lastIndexOf('/') + 1)
  const end = `:${port}`
  const names = last.endsWith(end) ? [last, last.slice(0, -end.length)] : [last]
  return names.map((name) => [name, at])
}

/** One desired member per place; the NULs keep an address from being taken for a name. */
function missingKey({ address, port, member }: DesiredMember): string {
  return address === undefined ? `\0${member ?? ''}` : `${canonicalAddress(address)}\0${port ?? ''}`
}

const RANK = { absent: 0, drain: 1, serve: 2 } as const

function stronger(known: DesiredMember | undefined, one: DesiredMember): DesiredMember {
  if (known === undefined) return one
  const rank =
    RANK[one.state] - RANK[known.state] ||
    Number(one.serving ?? true) - Number(known.serving ?? true)
  return rank > 0 ? one : known
}
