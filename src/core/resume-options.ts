import { z } from 'zod'
import type { DrainableProvider } from '../provider/contract.js'
import { systemClock } from '../provider/clock.js'
import { DrainableError } from '../provider/error.js'
import { parseOptions } from '../provider/options.js'
import { callShape, ticketShape, type Call, type Policy, type ResolvedPolicy } from './policy.js'
import type { Ticket } from './ticket.js'

/** What a resume or a restore takes; the policy itself is in the ticket. */
export type ResumeOptions = Call & Pick<Policy, 'tickets' | 'onTicket'>

/**
 * Checks the options, and that the ticket belongs to this balancer.
 *
 * @throws `INVALID_OPTIONS`, `TICKET_INVALID`
 */
export function resumeOptions(
  ticket: Ticket,
  o: ResumeOptions,
  provider: DrainableProvider,
  subject: string,
): ResolvedPolicy {
  const given = parseOptions(z.strictObject({ ...callShape, ...ticketShape }), o, subject)
  if (ticket.instance !== provider.instance) {
    throw new DrainableError(
      'TICKET_INVALID',
      `${subject}: ticket '${ticket.id}' belongs to ${ticket.instance}, this provider is ${provider.instance}`,
      { provider: provider.name },
    )
  }
  return {
    data: ticket.policy,
    clock: given.clock ?? systemClock,
    signal: given.signal,
    onEvent: given.onEvent,
    tickets: given.tickets,
    onTicket: given.onTicket,
    id: ticket.id,
  }
}
