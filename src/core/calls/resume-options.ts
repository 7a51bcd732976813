import * as z from 'zod/mini'
import type { DrainableProvider } from '../../provider/contract.js'
import { systemClock } from '../../provider/clock.js'
import { once, parseOptions } from '../../provider/options.js'
import { checkTicket, parseTicket, type Ticket } from '../tickets/ticket.js'
import { callShape, checkProvider, type Call } from './call-options.js'
import { everyShape, paceShape, ticketShape, type Policy, type ResolvedPolicy } from './policy.js'

/** Options of a resume or a restore; the policy itself is in the ticket. */
export type ResumeOptions = Call & Pick<Policy, 'tickets' | 'onTicket' | 'every' | 'pace'>

const resumeSchema = /* @__PURE__ */ once(() =>
  z.strictObject({
    ...callShape(),
    ...ticketShape(),
    ...everyShape(),
    ...paceShape(),
  }),
)

/**
 * Checks provider, ticket and options, and that the ticket belongs to this balancer.
 *
 * @throws `INVALID_OPTIONS`, `TICKET_INVALID`
 */
export function resumeOptions(
  provider: DrainableProvider,
  given: unknown,
  options: ResumeOptions,
  subject: string,
  needsMembers: boolean,
): {
  readonly provider: DrainableProvider
  readonly ticket: Ticket
  readonly resolved: ResolvedPolicy
} {
  checkProvider(provider, subject)
  const ticket = parseTicket(given, subject)
  const call = parseOptions(resumeSchema(), options, subject)
  checkTicket(ticket, provider, subject, needsMembers)
  return {
    provider,
    ticket,
    resolved: {
      data: ticket.policy,
      clock: call.clock ?? systemClock,
      signal: call.signal,
      onEvent: call.onEvent,
      every: call.every,
      pace: call.pace,
      tickets: call.tickets,
      onTicket: call.onTicket,
      id: ticket.id,
    },
  }
}
