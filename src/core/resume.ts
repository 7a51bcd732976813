import type { DrainableProvider } from '../provider/contract.js'
import { refKey } from '../provider/member-ref.js'
import { DrainHandle, EventHub, type Drain } from './handle.js'
import { Ledger } from './ledger.js'
import { toResumedPolicy, type ResolvedPolicy } from './policy.js'
import { resumeOptions, type ResumeOptions } from './resume-options.js'
import { Session, wallOffsetOf, type Prepared } from './session.js'
import { parseTicket, thawState, type Ticket } from './ticket.js'

/**
 * Goes on with a drain from its ticket, in this process or another: same members, same deadline, the
 * proof from the start.
 *
 * @throws `TICKET_INVALID` at once where it is no ticket or belongs to another balancer
 */
export function resumeDrain(p: DrainableProvider, ticket: Ticket, o: ResumeOptions = {}): Drain {
  const known = parseTicket(ticket)
  const resolved = resumeOptions(known, o, p, 'resumeDrain()')
  const hub = new EventHub(resolved.onEvent)
  const session = new Session(p, resolved, hub, 'resumeDrain()', (own) =>
    prepareResume(own, p, resolved, known),
  )
  return new DrainHandle(hub, session)
}

async function prepareResume(
  session: Session,
  provider: DrainableProvider,
  resolved: ResolvedPolicy,
  ticket: Ticket,
): Promise<Prepared> {
  const { lane, signal } = session
  const info = await lane.describe(signal)
  const policy = toResumedPolicy(resolved.data, info.capabilities, 'resumeDrain()')
  const offset = wallOffsetOf(lane)()
  const deadline = ticket.deadline === null ? null : Date.parse(ticket.deadline) - offset
  const ledger = new Ledger(
    ticket,
    { store: resolved.tickets, onTicket: resolved.onTicket },
    wallOffsetOf(lane),
  )
  const states = ticket.members.map((member) => {
    ledger.inherit(refKey(member.ref), member)
    return { ...thawState(member.state, offset, lane.clock.now(), false), deadline }
  })
  return { policy, states, ledger }
}
