import type { DesiredMember } from '../../provider/desired.js'
import type { PresentReading } from '../../provider/contract.js'
import { canonicalAddress } from '../address.js'

/** Which desired member is which member of one pool. */
export interface PoolMatch {
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
export function matchPool(
  desired: readonly DesiredMember[],
  members: readonly PresentReading[],
  names: Names,
): PoolMatch {
  const places = new Places(members)
  const wanted = new Array<DesiredMember | undefined>(members.length).fill(undefined)
  const missing = new Map<string, DesiredMember>()
  for (const one of desired) {
    let found = false
    for (const at of one.address === undefined ? names.at(one.member) : places.at(one)) {
      wanted[at] = stronger(wanted[at], one)
      found = true
    }
    if (found) continue
    const key = missingKey(one)
    missing.set(key, stronger(missing.get(key), one))
  }
  return { wanted, missing: [...missing.values()] }
}

const NONE: readonly number[] = []

/** The members of a pool by name: most plans ask for none. */
export class Names {
  readonly #members: readonly PresentReading[]
  #known: ReadonlyMap<string, number> | undefined
  #short: ReadonlyMap<string, number> | undefined

  constructor(members: readonly PresentReading[]) {
    this.#members = members
  }

  at(name: string | undefined): readonly number[] {
    const at = name === undefined ? undefined : this.#index().get(name)
    return at === undefined ? NONE : [at]
  }

  /**
   * Who has a name already, also where the product lists it with more: BIG-IP has `web` as `/Common/web:80`, NetScaler
   * as `web:80`.
   */
  holder(name: string): PresentReading | undefined {
    const at = this.#index().get(name) ?? this.#shorter().get(name)
    return at === undefined ? undefined : this.#members[at]
  }

  #shorter(): ReadonlyMap<string, number> {
    return (this.#short ??= new Map(
      this.#members.flatMap(({ ref, port }, at) => shorterNames(ref.member, port, at)),
    ))
  }

  #index(): ReadonlyMap<string, number> {
    return (this.#known ??= new Map(this.#members.map(({ ref }, at) => [ref.member, at])))
  }
}

/** What a member may also be called: without the partition before its name, and without the port behind it. */
function shorterNames(member: string, port: number | undefined, at: number): [string, number][] {
  const last = member.slice(member.lastIndexOf('/') + 1)
  const end = `:${port}`
  const names = last.endsWith(end) ? [last, last.slice(0, -end.length)] : [last]
  return names.map((name) => [name, at])
}

/** The members of a pool by address and port, as numbers in its list. */
class Places {
  readonly #members: readonly PresentReading[]
  /** Nearly always there is one at an address: a list is made only for the second. */
  readonly #byAddress = new Map<string, number | number[]>()
  /** Of addresses with many members: each port is found at once. */
  readonly #byPort = new Map<string, ReadonlyMap<number, number[]>>()
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

  /** Good until the next call. */
  at({ address = '', port }: DesiredMember): readonly number[] {
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
    return this.#amongMany(key, there, port)
  }

  #amongMany(key: string, there: readonly number[], port: number): readonly number[] {
    let ports = this.#byPort.get(key)
    if (ports === undefined) {
      ports = Map.groupBy(there, (at) => this.#members[at]?.port ?? ANY_PORT)
      this.#byPort.set(key, ports)
    }
    return [...(ports.get(port) ?? NONE), ...(ports.get(ANY_PORT) ?? NONE)]
  }

  #fits(at: number, wanted: number): boolean {
    const port = this.#members[at]?.port
    return port === wanted || port === undefined || port === ANY_PORT
  }
}

const FEW = 4
/** HAProxy's own word for a server without a port: the client's is used. */
const ANY_PORT = 0

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
