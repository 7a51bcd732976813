import * as z from 'zod/mini'
import { fn, nonEmpty } from '../../provider/option-schemas.js'
import { systemClock } from '../../provider/clock.js'
import type { MemberRef } from '../../provider/contract.js'
import type { DrainableError } from '../../provider/error.js'
import { refKey } from '../../provider/member-ref.js'
import { once, parseOptions } from '../../provider/options.js'
import { askedFirst } from '../tickets/calls.js'
import { readTickets, type OnUnreadable } from '../tickets/read-tickets.js'
import { checkStore, type TicketStore } from '../tickets/store.js'
import { drainsOf, type Ticket, type TicketMember } from '../tickets/ticket.js'
import { callShape, type Call } from './call-options.js'

/** Options of {@link heldMembers}. */
export interface HeldMembersOptions extends Pick<Call, 'signal'> {
  /**
   * Only members of this balancer (`DrainableProvider.instance`): needed if drains of several balancers keep their
   * tickets in one store. @defaultValue every balancer
   */
  readonly instance?: string | undefined
  /** Called for a ticket that can't be read; without it, such a ticket is an error. */
  readonly onUnreadable?: ((id: string, error: DrainableError) => void) | undefined
}

const schema = /* @__PURE__ */ once(() =>
  z.strictObject({
    signal: callShape().signal,
    instance: z.exactOptional(nonEmpty()),
    onUnreadable: z.exactOptional(fn<OnUnreadable>()),
  }),
)

/**
 * Lists the members that the drains of a store hold, or may hold: for a balancer that gets its complete state at the
 * start and must not open them. Reads only tickets, no balancer. Includes the drains of every client, whether its
 * process still runs or not.
 *
 * A member counts as held if its ticket has a hold or a removal, even if that was only intended: its process may have
 * ended before it saved the answer. A member that was opened again does not count.
 *
 * @param store - the store of the drains' tickets (`Policy.tickets`)
 * @returns each member once; with its `balancer` if it was drained behind a combined provider
 * @throws `UNSUPPORTED` if the store can't list its keys; `TICKET_INVALID` naming tickets that can't be read, unless
 *   `onUnreadable` takes them; the store's own error; `signal.reason` on abort
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
  const { instance, onUnreadable, ...given } = parseOptions(schema(), options, subject)
  const signal = given.signal ?? new AbortController().signal
  signal.throwIfAborted()
  const asked = askedFirst({ clock: systemClock, signal })
  const tickets = await readTickets(store, asked, subject, onUnreadable)
  signal.throwIfAborted()
  const held = tickets
    .flatMap(drainsOf)
    .flatMap((ticket) => ticket.members.filter((one) => isHeld(one) && isOf(ticket, one, instance)))
  return [...new Map(held.map(({ ref }) => [refKey(ref), { ...ref }])).values()]
}

/** Whether a hold of the drain is on it, or may be. One that was opened again has none. */
function isHeld(member: TicketMember): boolean {
  const { holding, held, wish, set, doubted, intended, late } = member
  if (holding && held && wish !== 'none') return true
  if ((set !== null && set !== 'ready') || doubted.length > 0) return true
  return [intended, ...late].some((change) => change?.kind === 'hold' || change?.kind === 'remove')
}

function isOf(ticket: Ticket, { ref }: TicketMember, instance: string | undefined): boolean {
  if (instance === undefined) return true
  const key = ref.balancer ?? null
  return ticket.parts.some((part) => part.balancer === key && part.instance === instance)
}
