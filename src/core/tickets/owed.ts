import type { AdminState, PresentReading, Reading } from '../../provider/contract.js'
import type { TicketMember } from './ticket.js'
import { isSameIdentity } from '../../provider/member-ref.js'

/** What a ticket still owes a member. */
export interface Owed {
  readonly member: TicketMember
  /** The own state that it was found in. */
  readonly own: AdminState | 'unknown'
  /** Whether it is held; else only a change of ours may still be carried out. */
  readonly held: boolean
}

/** Whether the member that is there is the one of the ticket. */
export function isSame({ identity }: TicketMember, reading: PresentReading): boolean {
  return identity !== null && isSameIdentity(identity, reading.identity)
}

/** Whether a change of ours may be on a member, as far as its ticket tells. */
export function mayOwe({ changes, state: { hold } }: TicketMember): boolean {
  return hold.intended !== null || hold.late.length > 0 || changes.some(isOurs)
}

function isOurs({ state, kind }: TicketMember['changes'][number]): boolean {
  return state !== 'unchanged' && kind !== 'terminate'
}

/** What a ticket owes a member as it is found: the undo of a hold that is there, or that may be carried out yet. */
export function owedOf(member: TicketMember, reading: Reading): Owed | undefined {
  if (!reading.present || !isSame(member, reading)) return undefined
  const { intended, late } = member.state.hold
  const held = reading.own !== member.wasAdmin && member.changes.some(isOurs)
  return held || intended !== null || late.length > 0
    ? { member, own: reading.own, held }
    : undefined
}
