import type { DrainableProvider } from '../../provider/contract.js'
import { DrainableError } from '../../provider/error.js'
import { formatRef } from '../../provider/member-ref.js'
import { checkKeys } from '../combined/divide.js'
import { combinedOf } from '../../core/combined.js'
import type { Asked } from '../../core/tickets/calls.js'
import { keptTicket } from '../../core/tickets/read-tickets.js'
import type { TicketStore } from '../../core/tickets/store.js'
import type { RollData, Ticket } from '../../core/tickets/ticket.js'
import type { ResolvedPolicy } from '../../core/calls/policy.js'
import { parseTarget, type Target } from '../../core/calls/target.js'
import { splitTarget, type RollTarget, type Server } from './servers.js'

/** Checks a target part by part; what it hits is seen later. */
export function checkTargets(
  provider: DrainableProvider,
  target: RollTarget,
  subject: string,
): readonly Target[] {
  const targets = splitTarget(target, subject)
  const parts = combinedOf(provider)
  for (const one of targets) {
    parseTarget(one, subject)
    if (parts !== undefined) checkKeys(one, parts, subject)
  }
  return targets
}

/** @throws `INVALID_OPTIONS` where no check would see one of the servers healthy */
export function refuseUnchecked(
  servers: readonly Server[],
  { health }: RollData['plan'],
  subject: string,
): void {
  if (health.by !== 'balancer') return
  const members = servers.flatMap((server) => server.members)
  const [first, ...others] = members.filter((member) => member.health === 'unchecked')
  if (first === undefined) return
  const more = others.length > 0 ? ` and ${others.length} more` : ''
  throw new DrainableError(
    'INVALID_OPTIONS',
    `${subject}: waitHealthy: no balancer checks ${formatRef(first.ref)}${more}, so no check would see it healthy; waitHealthy: false goes on without one, and a function of your own can look instead`,
    { ref: first.ref },
  )
}

/** A ticket of that id is of something that isn't over: its undo would be lost. */
export async function refuseEarlier(
  { tickets: store }: ResolvedPolicy,
  id: string | undefined,
  asked: Asked,
  subject: string,
): Promise<void> {
  if (store === undefined || id === undefined) return
  const kept = await keptTicket(store, id, asked, `${subject}: ticket '${id}'`)
  if (kept === undefined) return
  const way =
    kept.roll === undefined
      ? 'belongs to a drain: restore it'
      : 'belongs to a roll that has not ended: resumeRoll() continues it, restore() puts back the members that it holds'
  throw new DrainableError(
    'TICKET_INVALID',
    `${subject}: ticket '${id}' ${way}, or give another id`,
  )
}

/**
 * Reads the roll's newest ticket from the store. The process that held the lease may have continued since the ticket
 * was read: its finished work must not be repeated.
 *
 * @throws `CONFLICT` if the store no longer has the ticket; `TICKET_INVALID`
 */
export async function newestRoll(
  store: TicketStore | undefined,
  asked: Asked,
  { id }: Ticket,
  given: RollData,
  subject: string,
): Promise<RollData> {
  if (store === undefined) return given
  const kept = await keptTicket(store, id, asked, `${subject}: ticket '${id}'`)
  if (kept === undefined)
    throw new DrainableError(
      'CONFLICT',
      `${subject}: ticket '${id}' is no longer in the store, so this roll has ended since the ticket was read; if it was read from another store, give that one`,
      { retryable: false },
    )
  if (kept.roll === undefined)
    throw new DrainableError('TICKET_INVALID', `${subject}: ticket '${id}' belongs to a drain now`)
  return kept.roll
}
