import { abortable } from '../../provider/abort.js'
import type { DrainableProvider } from '../../provider/contract.js'
import { DrainableError, wordsOf } from '../../provider/error.js'
import type { DrainReport } from '../../provider/report.js'
import { startFaults } from '../telemetry.js'
import { combinedOf } from '../combined.js'
import { reportAll, unreached } from '../member/said/report.js'
import { Run } from './run/run.js'
import { openGoal, UNDO_LIMIT } from '../member/wanted.js'
import { FIRST_ANSWER, LATER_ANSWER } from '../tickets/calls.js'
import { balancerOf } from '../balancer/balancer.js'
import { baseSpec, claimsOf, sameKeeper, wallOffsetOf } from './drain-run.js'
import { drainsOf, type Ticket } from '../tickets/ticket.js'
import { TicketWriter } from '../tickets/writing/writer.js'
import { toResumedPolicy, type ResolvedPolicy } from './policy.js'
import { resumeOptions, type ResumeOptions } from './resume-options.js'

/**
 * Undoes the changes of a ticket's drain, and nothing else: it puts a member back to the state it had, and only if it
 * finds it as the drain left it. A change that was only intended, and a change that another client made since, is
 * left alone and reported as the member's `error`. Each member's outcome is then `restored`, or `overruled`, `gone`,
 * `refused` or `unreachable`.
 *
 * A member in maint goes through drain and waits there for its first check. If the answer to a change is missing, the
 * call keeps looking until that change can't be carried out any more. The ticket is deleted once nothing is left to
 * undo.
 *
 * @param provider - a provider of the balancer that the ticket names
 * @param ticket - of a drain or a roll, as read from a store
 * @param options - with the ticket's store, so that the ticket is deleted there once nothing is left to undo
 * @throws `TICKET_INVALID` if it is not a ticket or belongs to another balancer; `signal.reason` on abort
 *
 * @example
 * ```ts
 * import { fileTickets, restore, type DrainableProvider, type Ticket } from 'drainable'
 *
 * export async function undo(lb: DrainableProvider, id: string): Promise<boolean> {
 *   const tickets = fileTickets('/var/lib/drain')
 *   const ticket = (await tickets.get(id)) as Ticket | undefined
 *   if (ticket === undefined) return true
 *   const { members } = await restore(lb, ticket, { tickets })
 *   for (const { ref, outcome, error } of members) console.log(ref.member, outcome, error?.message ?? '')
 *   return members.every(({ outcome }) => outcome === 'restored')
 * }
 * ```
 */
export async function restore(
  provider: DrainableProvider,
  ticket: Ticket,
  options: ResumeOptions = {},
): Promise<DrainReport> {
  const subject = 'restore()'
  const { ticket: known, resolved } = resumeOptions(provider, ticket, options, subject, false)
  return restoreUnder(provider, known, resolved)
}

/** Does the same with a ticket that is already checked, under a lease if there is one. */
export async function restoreUnder(
  provider: DrainableProvider,
  known: Ticket,
  resolved: ResolvedPolicy,
): Promise<DrainReport> {
  const subject = 'restore()'
  const { clock, signal } = resolved
  signal?.throwIfAborted()
  if (known.roll !== undefined) return restoreRoll(provider, known, resolved)
  const combined = combinedOf(provider)
  if (combined !== undefined) return combined.restore(known, resolved, restoreUnder)
  const keeper = sameKeeper(known, resolved)
  if (known.members.length === 0) {
    await abortable(keeper.drop(FIRST_ANSWER), signal)
    return { outcome: 'restored', members: [], elapsed: 0 }
  }
  const living = balancerOf(provider, clock).writers.of(known.id)
  if (living instanceof Run) return living.restore()
  const run = new Run({
    ...baseSpec(provider, resolved, subject, startFaults(provider, resolved.onEvent)),
    side: 'open',
    refs: known.members.map(({ ref }) => ref),
    timeout: UNDO_LIMIT,
    resumed: known,
    keeper: () => keeper,
    prepare: async ({ scheduler, signal: stop, limit, startedAt }) => {
      const { capabilities } = await scheduler.describe(stop, limit())
      const policy = toResumedPolicy(resolved.data, capabilities, subject)
      const until = startedAt + UNDO_LIMIT
      const goal = openGoal({ of: 'ours', since: startedAt, until, lateUntil: null })
      const times = { now: clock.now(), wallOffset: wallOffsetOf(clock) }
      return { claims: claimsOf(known, policy, { ...times, goal, deadline: null }), keeper }
    },
  })
  const report = await run.done
  if (report.outcome === 'aborted' && signal?.aborted === true) throw signal.reason
  if (report.members.length > 0) return report
  // The undo could not begin, so no member was read: each has the outcome of the balancer.
  return { ...report, members: unreached(known, report) }
}

/** Does the same for the drains of a roll: what can't be undone stays in its ticket. */
async function restoreRoll(
  provider: DrainableProvider,
  ticket: Ticket,
  resolved: ResolvedPolicy,
): Promise<DrainReport> {
  const { clock, tickets: store, onTicket } = resolved
  const startedAt = clock.now()
  const undone = new Set<unknown>()
  const reports = await Promise.all(
    drainsOf(ticket).map(async (drain) => {
      const own = { ...resolved, data: drain.policy, tickets: undefined, onTicket: undefined }
      const report = await restoreUnder(provider, drain, own)
      if (report.members.every(({ outcome }) => outcome !== 'unreachable' && outcome !== 'refused'))
        undone.add(drain)
      return report
    }),
  )
  const servers = (ticket.roll?.servers ?? []).map((server) =>
    undone.has(server.drain) ? { ...server, state: 'waiting' as const, drain: null } : server,
  )
  const left: Ticket =
    ticket.roll === undefined ? ticket : { ...ticket, roll: { ...ticket.roll, servers } }
  const members = reports.flatMap((report) => report.members)
  const error = reports.find((one) => one.error !== undefined)?.error
  const elapsed = Math.round(clock.now() - startedAt)
  const report: DrainReport =
    reports.length === 0
      ? { outcome: 'restored', members, elapsed }
      : { ...reportAll(members, elapsed), ...(error === undefined ? {} : { error }) }
  const writer = new TicketWriter(ticket.id, { store, onTicket }, clock, ticket.lease)
  const limit = reports.length === 0 ? FIRST_ANSWER : LATER_ANSWER
  const isKept = servers.some(({ drain }) => drain !== null)
  const writing = isKept ? writer.save(() => left, limit) : writer.drop(limit)
  await abortable(writing, resolved.signal).catch((cause: unknown) => {
    resolved.signal?.throwIfAborted()
    const words = `restore(): its servers were put back as the report says, but the ticket stays as it was: ${wordsOf(cause)}`
    throw new DrainableError('TICKET_INVALID', words, { cause, report })
  })
  return report
}
