import * as z from 'zod'
import type { MemberRef } from '../../provider/contract.js'
import type { DrainableError } from '../../provider/error.js'
import { refKey } from '../../provider/member-ref.js'
import { parseOptions } from '../../provider/options.js'
import { readTickets, type OnUnreadable } from '../tickets/read-tickets.js'
import type { TicketStore } from '../tickets/store.js'
import { drainsOf, type Ticket, type TicketMember } from '../tickets/ticket.js'
import { callSchema, fn, type Call } from './call.js'
import { checkStore } from './policy.js'
import { once } from '../../provider/once.js'

/** Options of {@link heldMembers}. */
export interface HeldMembersOptions extends Pick<Call, 'signal'> {
  /**
   * The balancer whose members are asked for (`DrainableProvider.instance`): needed where drains of several
   * balancers keep their tickets in one store. @defaultValue every balancer
   */
  readonly instance?: string | undefined
  /** Called for a ticket that can't be read; without it such a ticket is an error. */
  readonly onUnreadable?: ((id: string, error: DrainableError) => void) | undefined
}

const schema = once(() =>
  callSchema()
    .pick({ signal: true })
    .extend({ instance: z.string().min(1).exactOptional(), onUnreadable: fn().exactOptional() }),
)

/**
 * The members that the drains of a store hold, or may hold: for a balancer that is told its whole state at
 * the start, so that it opens none of them. Reads tickets alone, no balancer; by whichever client, and whether
 * his process lives, does not matter.
 *
 * A member counts as held where the last change in its ticket is a hold or a removal, also one that was only
 * intended: its process may have ended before the answer was written down. One that was opened again does not.
 *
 * @param store - where the drains kept their tickets (`Policy.tickets`)
 * @returns each member once; with its `balancer` where it was drained behind a combined provider
 * @throws `TICKET_INVALID` naming tickets that can't be read, unless `onUnreadable` takes them; what the store failed with; `signal.reason` on abort
 * @example
 * ```ts
 * import { fileTickets, heldMembers } from 'drainable'
 * import { envoy, restEndpoints } from 'drainable/envoy'
 *
 * declare const sets: readonly unknown[] // full ClusterLoadAssignments
 * const tickets = fileTickets('/var/lib/drains')
 * const lb = envoy({
 *   endpoints: restEndpoints({
 *     port: 18080,
 *     initial: { adopt: true, else: sets, held: (instance) => heldMembers(tickets, { instance }) },
 *   }),
 *   admin: ['http://127.0.0.1:9901'],
 * })
 * ```
 */
export async function heldMembers(
  store: TicketStore,
  options: HeldMembersOptions = {},
): Promise<readonly MemberRef[]> {
  const subject = 'heldMembers()'
  checkStore(store, subject)
  const { instance, ...given } = parseOptions(schema(), options, subject)
  const signal = given.signal ?? new AbortController().signal
  signal.throwIfAborted()
  const onUnreadable = given.onUnreadable as OnUnreadable | undefined
  const tickets = await readTickets(store, signal, subject, onUnreadable)
  signal.throwIfAborted()
  const held = tickets
    .flatMap(drainsOf)
    .flatMap((ticket) => ticket.members.filter((one) => isHeld(one) && isOf(ticket, one, instance)))
  return [...new Map(held.map(({ ref }) => [refKey(ref), { ...ref }])).values()]
}

function isHeld({ changes, state }: TicketMember): boolean {
  const last = changes.findLast(({ kind }) => kind !== 'terminate')
  if (last !== undefined) return last.kind !== 'restore'
  const { intended, late } = state.hold
  return [intended, ...late.map(({ change }) => change)].some((change) => change?.kind === 'hold')
}

function isOf(ticket: Ticket, { ref }: TicketMember, instance: string | undefined): boolean {
  if (instance === undefined) return true
  const key = ref.balancer ?? null
  return ticket.parts.some((part) => part.balancer === key && part.instance === instance)
}
