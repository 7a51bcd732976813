import type { AdminState, DrainableProvider, Reading } from '../provider/contract.js'
import { DrainableError, isDrainableError } from '../provider/error.js'
import { formatRef, refKey } from '../provider/member-ref.js'
import type { DrainReport, MemberReport, Outcome } from '../provider/report.js'
import { yieldClaims } from './claims.js'
import { laneOf, type Lane } from './lane.js'
import { QUIET_LIMIT, reopen, type Reopened, type Reopening } from './reopen.js'
import { worst } from './report.js'
import { resumeOptions, type ResumeOptions } from './resume-options.js'
import { readingsOf } from './target.js'
import { parseTicket, type Ticket, type TicketMember } from './ticket.js'
import { dropTicket } from './ticket-store.js'

/** How long an undo may take: the first check after maint needs its time. Milliseconds. */
const UNDO_LIMIT = 30_000

/**
 * Undoes what a ticket's drain changed, and only that: a member is put back to the state it had, and
 * only where it is found as we left it. What was only intended, and what somebody else changed
 * since, is left alone and reported as the member's `error`.
 *
 * A member that comes out of maint goes by way of drain and waits there for its first check.
 *
 * @throws `TICKET_INVALID` where it is no ticket or belongs to another balancer; `UNREACHABLE`, `CALL_TIMEOUT`
 */
export async function restore(
  p: DrainableProvider,
  ticket: Ticket,
  o: ResumeOptions = {},
): Promise<DrainReport> {
  const known = parseTicket(ticket)
  const { clock, signal, tickets } = resumeOptions(known, o, p, 'restore()')
  const lane = laneOf(p, clock)
  const stop = signal ?? new AbortController().signal
  const refs = known.members.map((member) => member.ref)
  for (const ref of refs) yieldClaims(p, ref)
  await lane.quiet(refs, QUIET_LIMIT, stop)
  const report = await restoreMembers(lane, known, undefined, stop)
  if (tickets !== undefined && nothingLeft(report)) {
    await dropTicket(tickets, known.id)
  }
  return report
}

/** Whether an undo is complete: a member that is gone has nothing to undo any more. */
export function nothingLeft(report: DrainReport): boolean {
  return report.members.every(
    ({ error }) => error === undefined || isDrainableError(error, 'MEMBER_GONE'),
  )
}

/** The same on a lane, for a drain that has a report already. */
export async function restoreMembers(
  lane: Lane,
  ticket: Ticket,
  before: DrainReport | undefined,
  signal: AbortSignal,
): Promise<DrainReport> {
  const startedAt = lane.clock.now()
  const { snapshot } = await lane.look(
    ticket.members.map((member) => member.ref),
    signal,
  )
  const readings = readingsOf(snapshot)
  const settled = new Map<string, Reopened>()
  const wishes: Reopening[] = []
  for (const member of ticket.members) {
    const reading = readings.get(refKey(member.ref)) ?? {
      ref: member.ref,
      present: false as const,
      scopes: [],
    }
    const plan = planUndo(member, reading)
    if ('to' in plan) wishes.push(plan)
    else settled.set(refKey(member.ref), plan)
  }
  const options = { signal, mustBeHealthy: false, limit: UNDO_LIMIT }
  for (const done of await reopen(lane, wishes, options)) settled.set(refKey(done.ref), done)
  const members = ticket.members.map((member) =>
    describe(member, settled.get(refKey(member.ref)), before, ticket, lane.clock.now() - startedAt),
  )
  return {
    outcome: worst(members.map((member) => member.outcome)),
    members,
    elapsed: Math.round(lane.clock.now() - startedAt),
  }
}

/** What is to be undone on one member, or why nothing is. */
function planUndo(member: TicketMember, reading: Reading): Reopening | Reopened {
  const { ref, identity, wasAdmin, native, changes } = member
  const own = reading.present ? reading.own : 'unknown'
  const left = (error?: DrainableError): Reopened => ({
    ref,
    wasAdmin: wasAdmin ?? 'ready',
    health: reading.present ? reading.health : 'unknown',
    lastReading: reading,
    ...(error === undefined ? {} : { error }),
  })
  const holds = changes.filter((change) => change.kind === 'hold')
  const ours = holds.flatMap((change): AdminState[] =>
    change.state === 'applied' && change.to !== undefined ? [change.to] : [],
  )
  const raising = holds.findLast((change) => change.state === 'intended')?.to
  if (reading.present && own === wasAdmin) return left()
  if (ours.length === 0) {
    if (raising === undefined) return left()
    return left(
      new DrainableError(
        'CONFLICT',
        `${formatRef(ref)}: the change to '${raising}' was only intended, nobody knows whether the '${own}' found is ours; it was left alone, ready() opens it`,
        { ref, retryable: false },
      ),
    )
  }
  if (wasAdmin === null) {
    return left(
      new DrainableError(
        'CONFLICT',
        `${formatRef(ref)}: its state before the drain was not known, it was left alone, ready() opens it`,
        { ref, retryable: false },
      ),
    )
  }
  const last = ours.at(-1)
  const from = [...(last === undefined ? [] : [last]), ...(raising === undefined ? [] : [raising])]
  return {
    ref,
    to: wasAdmin,
    from,
    ...(identity === null ? {} : { identity }),
    ...(native === null ? {} : { native }),
  }
}

function describe(
  member: TicketMember,
  undone: Reopened | undefined,
  before: DrainReport | undefined,
  ticket: Ticket,
  took: number,
): MemberReport {
  const known = before?.members.find((report) => refKey(report.ref) === refKey(member.ref))
  const error = undone?.error
  const outcome: Outcome =
    error === undefined
      ? (known?.outcome ?? member.outcome ?? 'aborted')
      : error.code === 'MEMBER_GONE'
        ? 'gone'
        : 'overruled'
  const elapsed = Math.max(0, Date.now() - Date.parse(ticket.startedAt))
  return {
    ref: member.ref,
    outcome,
    phase: error === undefined ? 'active' : error.code === 'MEMBER_GONE' ? 'removed' : 'draining',
    wasAdmin: member.wasAdmin ?? 'ready',
    verifiedIdle: known?.verifiedIdle ?? false,
    sealed: false,
    ...(known?.proof === undefined ? {} : { proof: known.proof }),
    lost: known?.lost ?? [],
    terminated: known?.terminated ?? 0,
    elapsed: known === undefined ? elapsed : Math.round(known.elapsed + took),
    why: [],
    ...(undone?.lastReading === undefined ? {} : { lastReading: undone.lastReading }),
    ...(error === undefined ? {} : { error }),
  }
}
