import type { MemberRef } from '../../provider/contract.js'
import type { Ticket, TicketMember } from '../tickets/ticket.js'
import type { ServerState } from './ledger.js'

/** Whether it was open when its drain began. */
export function wasReady({ wasAdmin }: TicketMember): boolean {
  return wasAdmin === 'ready'
}

/** Whether a change of ours has been, or may have been, carried out. */
export function changed({ changes }: TicketMember): boolean {
  return changes.some(({ state }) => state !== 'unchanged')
}

/** Whether something of ours may be left on what a drain was about. */
export function holdsAnything({ members }: Ticket): boolean {
  return members.some(changed)
}

/** The members that a roll has left drained: open when it began, and not opened again. */
export function leftDrained({ drain }: ServerState): readonly MemberRef[] {
  if (drain === null) return []
  return drain.members.filter((member) => changed(member)).map(({ ref }) => ref)
}
