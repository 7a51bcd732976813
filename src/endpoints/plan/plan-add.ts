import type { DesiredMember } from '../../provider/desired.js'
import type { MemberRef } from '../../provider/contract.js'
import { freeName } from '../../provider/member-ref.js'
import { formatAddress } from '../address.js'
import type { Names } from './match-members.js'
import type { HeldBack, PlannedChange, PlanOptions } from './plan.js'

/** What members that the balancer does not have are added to. */
export interface AddInput {
  readonly names: Names
  /** The names that this plan gave already. */
  readonly given: Set<string>
  readonly balancer: string | undefined
  readonly options: PlanOptions
}

/** How a desired member that the balancer does not have is added, or why it is not. */
export function planAdd(
  one: DesiredMember,
  { names, given, balancer, options }: AddInput,
): PlannedChange | HeldBack | undefined {
  if (one.state !== 'serve') return undefined
  const { address, port, weight, reason = 'serve' } = one
  const ref = { ...refOf(one), ...(balancer === undefined ? {} : { balancer }) }
  if (one.ifAbsent === 'skip') {
    return { ref, reason: `${reason}, but it is not in the balancer and not to be added` }
  }
  if (address === undefined || port === undefined) {
    const missing = address === undefined ? 'address' : 'port'
    return {
      ref,
      reason: `${reason}, but it is not in the balancer, and without ${missing} it can't be added`,
    }
  }
  if (options.capabilities?.add === false) {
    return { ref, reason: `${reason}, but the product can't add members` }
  }
  const weighted = weight === undefined ? {} : { weight }
  const place = { address, port, ...weighted }
  const holder = holderOf(ref.member, names, given)
  if (holder === undefined) {
    given.add(ref.member)
    return { change: { kind: 'add', ref, ...place }, reason }
  }
  const member = freeName(ref.member, place)
  const taken = `its name ${ref.member} is taken by ${holder}`
  // Without an address nothing says that it is another one: it could be added again by each plan.
  if (holder === UNKNOWN_PLACE || holderOf(member, names, given) !== undefined)
    return { ref, reason: `${reason}, but ${taken}: it is added once that one is out` }
  given.add(member)
  return {
    change: { kind: 'add', ref: { ...ref, member }, ...place },
    reason: `${reason}; as ${member}, because ${taken}`,
  }
}

const UNKNOWN_PLACE = 'a member at an unknown address'

/** What has a name already. A member is its address: a pod of a StatefulSet comes back under its name elsewhere. */
function holderOf(name: string, names: Names, given: ReadonlySet<string>): string | undefined {
  const taken = names.holder(name)
  if (taken === undefined) return given.has(name) ? 'another one that is added' : undefined
  if (taken.address === undefined || taken.address === '') return UNKNOWN_PLACE
  return `a member at ${formatAddress(taken.address, taken.port)}`
}

/** The name a desired member has, or gets where it is added. */
export function refOf({ pool, member, address, port }: DesiredMember): MemberRef {
  return { pool, member: member ?? formatAddress(address ?? '', port) }
}
