import { isSameIdentity } from '../../provider/member-ref.js'
import type { AdminState, PresentReading, Reading } from '../../provider/contract.js'
import type { TicketMember } from './ticket.js'

/** What a ticket still owes a member. */
export interface Owed {
  readonly member: TicketMember
  /** The own state that it was found in. */
  readonly own: AdminState | 'unknown'
  /** Whether it is held; else only a change of ours may still be carried out. */
  readonly held: boolean
}

/** Whether the member that is there is the one of the ticket. */
export function isSame({ found }: TicketMember, reading: PresentReading): boolean {
  return found !== null && isSameIdentity(found.identity, reading.identity)
}

/** Whether a change of ours may be on a member, or may still come, as far as its ticket tells. */
export function mayOwe(member: TicketMember): boolean {
  return member.intended !== null || member.late.length > 0 || isChanged(member)
}

function isChanged({ set, earlier, doubted }: TicketMember): boolean {
  return set !== null || earlier.length > 0 || doubted.length > 0
}

/** What a ticket owes a member as it is found: the undo of a hold that is there, or that may be carried out yet. */
export function owedOf(member: TicketMember, reading: Reading): Owed | undefined {
  if (!reading.present || !isSame(member, reading)) return undefined
  const { own } = reading
  const held = own !== member.found?.own && isChanged(member)
  const mayCome = member.intended !== null || member.late.length > 0
  return held || mayCome ? { member, own, held } : undefined
}
