import { LATER_ANSWER } from '../core/tickets/calls.js'
import { TicketWriter } from '../core/tickets/writing/writer.js'
import { toDrainableError } from '../provider/error.js'
import type { WorkSpec } from './work-spec.js'

/** Drops a ticket of which nothing is left; a failure is told. */
export async function dropTicket(
  id: string,
  { tickets, provider, policy, subject, fault }: WorkSpec,
): Promise<void> {
  try {
    await new TicketWriter(id, { store: tickets }, policy.clock).drop(LATER_ANSWER)
  } catch (thrown) {
    fault(toDrainableError(thrown, provider.name, subject))
  }
}
