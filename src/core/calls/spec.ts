import { randomUUID } from 'node:crypto'
import { wallOf } from '../../provider/clock.js'
import type { DrainableProvider } from '../../provider/contract.js'
import type { DrainEvent } from '../events.js'
import type { RunSpec } from './run/run-spec.js'
import { TicketKeeper } from '../tickets/writing/keeper.js'
import { ownerHere, type HeldBy } from '../tickets/owner.js'
import type { PolicyData, Ticket } from '../tickets/ticket.js'
import type { ResolvedPolicy } from './policy.js'

/** Epoch milliseconds minus the clock's `now()`, at present. */
export function wallOffsetOf(clock: ResolvedPolicy['clock']): number {
  return wallOf(clock) - clock.now()
}

/** Makes the keeper for the ticket of a new drain. */
export function newKeeper(
  resolved: ResolvedPolicy,
  provider: DrainableProvider,
  heldBy: HeldBy = 'process',
  startedAt = resolved.clock.now(),
): TicketKeeper {
  const { clock, data, tickets, onTicket, whole, id, owner } = resolved
  const iso = (at: number): string => new Date(at + wallOffsetOf(clock)).toISOString()
  const { name, instance } = provider
  return new TicketKeeper(
    {
      id: id ?? randomUUID(),
      instance,
      parts: [{ balancer: null, name, instance }],
      startedAt: iso(startedAt),
      deadline: data.timeout === null ? null : iso(startedAt + data.timeout),
      policy: data,
      owner: ownerHere(owner ?? null, heldBy),
      ...markOf(resolved),
    },
    { store: tickets, onTicket, whole },
    clock,
  )
}

/** The lease in a ticket: that of the process that writes it, not of the process that began it. */
function markOf({ term }: ResolvedPolicy): Pick<Ticket, 'lease'> {
  return term === undefined ? {} : { lease: term.mark }
}

/** Makes the keeper for a ticket that another run began: this process owns it from now on. */
export function sameKeeper(
  ticket: Ticket,
  resolved: ResolvedPolicy,
  heldBy: HeldBy = 'process',
): TicketKeeper {
  const { id, instance, parts, startedAt, deadline, policy } = ticket
  const { tickets, onTicket, whole, clock } = resolved
  const owner = ownerHere(resolved.owner ?? ticket.owner.name, heldBy)
  return new TicketKeeper(
    { id, instance, parts, startedAt, deadline, policy, owner, ...markOf(resolved) },
    { store: tickets, onTicket, whole },
    clock,
    ticket.lease,
  )
}

/** The part of a spec that all runs with a policy have in common. */
export function baseSpec(
  provider: DrainableProvider,
  resolved: ResolvedPolicy,
  subject: string,
  emit: (event: DrainEvent) => void,
): Pick<
  RunSpec,
  | 'provider'
  | 'subject'
  | 'clock'
  | 'signal'
  | 'onAbort'
  | 'keepReady'
  | 'timeout'
  | 'onTimeout'
  | 'patient'
  | 'emit'
  | 'permit'
  | 'pace'
> {
  const { data, clock, signal, term, pace } = resolved
  const { onAbort, keepReady, timeout, onTimeout, onUnreachable }: PolicyData = data
  const base = {
    provider,
    subject,
    clock,
    signal,
    onAbort,
    keepReady,
    timeout,
    onTimeout,
    pace,
    emit,
  }
  const patient = onUnreachable === 'wait'
  return { ...base, patient, ...(term === undefined ? {} : { permit: term.permit }) }
}
