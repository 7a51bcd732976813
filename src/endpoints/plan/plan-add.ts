import type { DesiredMember } from '../../provider/desired.js'
import type { MemberRef } from '../../provider/contract.js'
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
  const taken = names.get(ref.member)
  if (taken !== undefined) {
    const at =
      taken.address === undefined ? 'an unknown address' : formatAddress(taken.address, taken.port)
    return {
      ref,
      reason: `${reason}, but its name is taken by a member at ${at}: it is added once that one is out`,
    }
  }
  if (options.capabilities?.add === false) {
    return { ref, reason: `${reason}, but the product can't add members` }
  }
  if (given.has(ref.member)) {
    const why = `${reason}, but its name ${ref.member} is given to another one that is added`
    return { ref, reason: why }
  }
  given.add(ref.member)
  const weighted = weight === undefined ? {} : { weight }
  return { change: { kind: 'add', ref, address, port, ...weighted }, reason }
}

/** The name a desired member has, or gets where it is added. */
export function refOf({ pool, member, address, port }: DesiredMember): MemberRef {
  return { pool, member: member ?? formatAddress(address ?? '', port) }
}
