import type { DrainableProvider } from '../../provider/contract.js'
import { combinedOf } from '../combined.js'
import type { Drain, HandleBody } from './handle.js'
import type { Ticket } from '../tickets/ticket.js'
import { opened, type Opened } from './drain.js'
import { resumedRun } from './drain-run.js'
import type { ResolvedPolicy } from './policy.js'
import { resumeOptions, type ResumeOptions } from './resume-options.js'

/**
 * Continues a drain from its ticket, in this process or another: same members, same deadline. It starts in the phase
 * draining, without a proof: only readings of this process lead to idle. A member that was overruled or gone before is left
 * alone: `drain()` begins anew.
 *
 * @param provider - a provider of the balancer that the ticket names
 * @param ticket - as read from a store
 * @param options - with the store for the ticket from now on
 * @throws `TICKET_INVALID` at once if it is not a ticket or belongs to another balancer
 *
 * @example
 * ```ts
 * import { fileTickets, resumeDrain, type DrainableProvider, type Ticket } from 'drainable'
 *
 * export async function goOn(lb: DrainableProvider, id: string): Promise<string> {
 *   const tickets = fileTickets('/var/lib/drain')
 *   const ticket = (await tickets.get(id)) as Ticket | undefined
 *   if (ticket === undefined) return 'nothing is left to do'
 *   await using run = resumeDrain(lb, ticket, { tickets })
 *   return (await run.done).outcome
 * }
 * ```
 */
export function resumeDrain(
  provider: DrainableProvider,
  ticket: Ticket,
  options: ResumeOptions = {},
): Drain {
  const subject = 'resumeDrain()'
  const { ticket: known, resolved } = resumeOptions(provider, ticket, options, subject, true)
  return openResumed(provider, known, resolved, subject).handle
}

/** Does the same with a ticket that is already checked. */
export function openResumed(
  provider: DrainableProvider,
  ticket: Ticket,
  resolved: ResolvedPolicy,
  subject: string,
): Opened {
  return opened(
    provider,
    resolved,
    `ticket ${ticket.id}`,
    undefined,
    (emit): HandleBody =>
      combinedOf(provider)?.resume(ticket, resolved, subject, emit) ??
      resumedRun(provider, ticket, resolved, subject, emit),
  )
}
