import { randomUUID } from 'node:crypto'
import * as z from 'zod/mini'
import { isoOf, systemClock } from '../../../provider/clock.js'
import type { DrainableProvider, MemberRef } from '../../../provider/contract.js'
import { durationOption } from '../../../provider/option-schemas.js'
import { DrainableError } from '../../../provider/error.js'
import { formatRef } from '../../../provider/member-ref.js'
import { isPromise, once, parseOptions, readGiven } from '../../../provider/options.js'
import { quote } from '../../../provider/quote.js'
import type { DrainReport } from '../../../provider/report.js'
import { combinedOf } from '../../combined.js'
import { guarded } from '../../event-hub.js'
import { stepTelemetry } from '../../telemetry.js'
import type { DrainEvent } from '../../events.js'
import { NO_ENDING } from '../../member/record.js'
import { FIRST_ANSWER } from '../../tickets/calls.js'
import { isOver } from '../../tickets/member.js'
import { toGiven } from '../../tickets/options-table.js'
import {
  checkTicket,
  isJsonText,
  parseTicket,
  type Ticket,
  type TicketMember,
} from '../../tickets/ticket.js'
import { TicketWriter } from '../../tickets/writing/writer.js'
import { callShape, checkProvider } from '../call-options.js'
import { claimsOf, deadlineOf, wallOffsetOf } from '../drain-run.js'
import {
  paceShape,
  parsePolicy,
  ticketShape,
  toResumedPolicy,
  type ResolvedPolicy,
} from '../policy.js'
import { prepareDrain } from '../prepare-drain.js'
import { unpreparedReport } from '../run/preparation.js'
import type { PreparedClaim } from '../run/run-spec.js'
import { isOpen, Step, type From } from './one-step.js'
import type { DrainStep, StepDone, StepOptions, StepStart } from './step-types.js'
import { namedRefs, parseTarget } from '../target.js'

const stepSchema = /* @__PURE__ */ once(() =>
  z.strictObject({
    ...callShape(),
    ...paceShape(),
    ...ticketShape(),
    limit: z.exactOptional(durationOption({ bareSeconds: 'refuse' })),
  }),
)

const SUBJECT = 'stepDrain()'

export type { DrainStep, StepOptions, StepStart } from './step-types.js'

/**
 * Makes one step of a drain, for callers with their own queue (a controller's requeue, cron, serverless): it goes on for as
 * long as one proof can need, writes the ticket, and lets go. It ends at once where the balancer shows work that is not
 * done, and when a member has its outcome. No timer outlives the call, and the ticket is the only state: the next step
 * proves anew.
 *
 * With `tickets` or `onTicket` a step keeps the ticket before it sends anything. Without either, it first returns a
 * change as intended, with `againIn` 0, and the next step sends it: so the caller keeps the ticket with the change before
 * anything happens.
 *
 * Make one step of a ticket at a time. Two steps at once never report a busy member as idle, but the ticket that is
 * kept last may not know what the other step has sent, and an undo with it leaves that change in place.
 *
 * @param provider - the balancer, or several as one ({@link combineProviders})
 * @param from - what to drain and how, or the ticket from the last step
 * @throws `TICKET_INVALID`, `NOT_FOUND`, `POOL_AT_MINIMUM`, `UNSUPPORTED`, `INVALID_OPTIONS` before anything is changed; `signal.reason` on abort
 *
 * @example
 * ```ts
 * import { stepDrain, type DrainableProvider, type Ticket } from 'drainable'
 *
 * export async function requeueAfter(
 *   lb: DrainableProvider,
 *   kept: Ticket | undefined,
 *   keep: (ticket: Ticket) => Promise<void>,
 * ): Promise<number | undefined> {
 *   const target = { pool: 'web', member: 'web1' }
 *   const step = await stepDrain(lb, kept ?? { target, policy: { timeout: '10m' } }, { onTicket: keep })
 *   await keep(step.ticket)
 *   return step.outcome === undefined ? step.againIn : undefined
 * }
 * ```
 */
export async function stepDrain(
  provider: DrainableProvider,
  from: Ticket | StepStart,
  options: StepOptions = {},
): Promise<DrainStep> {
  const subject = SUBJECT
  checkProvider(provider, subject)
  const begun = readGiven(`${subject}: from`, () => parseFrom(from, subject))
  const { pace, limit, tickets, onTicket, ...call } = parseOptions(stepSchema(), options, subject)
  const { onEvent, signal, clock = systemClock } = call
  signal?.throwIfAborted()
  const first =
    'target' in begun ? readGiven(`${subject}: from`, () => firstOf(begun, subject)) : undefined
  const telemetry = stepTelemetry(provider, first?.id ?? (begun as Ticket).id, first?.refs)
  const hear = (event: DrainEvent): void => {
    telemetry.event(event)
    if (onEvent !== undefined) guarded(() => onEvent(event))
  }
  const end = (report: DrainReport): void =>
    telemetry.event({ type: 'end', at: isoOf(clock), outcome: report.outcome, report })
  try {
    const own = { ...call, pace, limit, tickets, onTicket, onEvent: hear }
    const { step, report } = await stepOn(provider, first?.from ?? begun, own)
    if (step.outcome !== undefined && (first !== undefined || isOpen(begun as Ticket))) end(report)
    return step
  } catch (error) {
    if (first !== undefined) end(unbegunReport(provider, signal, error))
    throw error
  }
}

/** What the first step of a drain goes on from: checked, and with the id that its ticket will have. */
function firstOf(
  start: StepStart,
  subject: string,
): { readonly from: StepStart; readonly id: string; readonly refs: readonly MemberRef[] } {
  const refs = namedRefs(parseTarget(start.target, subject))
  const { data, id = randomUUID(), owner } = policyOf(start, subject)
  const policy = { ...toGiven(data), id, ...(owner === undefined ? {} : { owner }) }
  return { from: { target: start.target, policy }, id, refs }
}

/** The report of a drain whose first step failed. */
function unbegunReport(
  provider: DrainableProvider,
  signal: AbortSignal | undefined,
  error: unknown,
): DrainReport {
  const spec = { provider, subject: SUBJECT, signal, patient: false } as const
  const run = { spec: { ...spec, side: 'drain', onTimeout: 'fail' }, elapsed: 0 } as const
  return unpreparedReport({ ...run, isTooLate: false, isGivenUp: false }, error)
}

/** Checked options of a step: times in milliseconds. */
type CheckedOptions = Omit<StepOptions, 'limit' | 'pace'> & {
  readonly limit?: number | undefined
  readonly pace?: number | undefined
}

/** Makes a step on one balancer or on several. */
async function stepOn(
  provider: DrainableProvider,
  from: Ticket | StepStart,
  options: CheckedOptions,
): Promise<StepDone> {
  const { pace, limit, tickets, onTicket, ...call } = options
  const combined = combinedOf(provider)
  if (combined !== undefined) {
    const done = await combined.step(from, call, (part, own, onEvent) =>
      stepOn(part, own, { ...call, pace, limit, onEvent }),
    )
    // A part sends what it has announced in the step before: by then the whole ticket is kept.
    const { ticket } = done.step
    const targets = { store: tickets, onTicket }
    const writer = new TicketWriter(ticket.id, targets, call.clock ?? systemClock, ticket.lease)
    if (writer.kept) await writer.save(() => ticket, FIRST_ANSWER)
    return done
  }
  const { onEvent, signal } = call
  const emit = (event: DrainEvent): void => {
    // The end of a step is not the end of the drain.
    if (event.type !== 'end') onEvent?.(event)
  }
  const base = parsePolicy({}, SUBJECT)
  const its = { clock: call.clock ?? base.clock, signal, onEvent, pace, tickets, onTicket }
  const begun = readGiven(`${SUBJECT}: from`, () =>
    'target' in from ? startOf(from, SUBJECT) : ticketOf(from, provider, SUBJECT),
  )
  const resolved = { ...begun.resolved, ...its }
  return new Step(provider, { ...begun, resolved }, limit, emit).go()
}

function parseFrom(from: unknown, subject: string): Ticket | StepStart {
  if (isJsonText(from) || isPromise(from)) return parseTicket(from, subject)
  if (typeof from !== 'object' || from === null || Array.isArray(from)) {
    throw new DrainableError(
      'INVALID_OPTIONS',
      `${subject}: from: expected a ticket or { target, policy? }, found ${Array.isArray(from) ? 'a list' : quote(String(from), 40)}`,
    )
  }
  if (!('target' in from) && ('pool' in from || 'address' in from)) {
    throw new DrainableError(
      'INVALID_OPTIONS',
      `${subject}: from: expected a ticket or { target, policy? }, found a target alone: write { target: ... }`,
    )
  }
  const isStart = 'policy' in from && !('v' in from) && !('members' in from)
  if (!('target' in from) && isStart) {
    throw new DrainableError(
      'INVALID_OPTIONS',
      `${subject}: from: target is missing: write { target: { pool, member }, policy }`,
    )
  }
  if (!('target' in from)) return parseTicket(from, subject)
  const unknown = Object.keys(from).filter((key) => key !== 'target' && key !== 'policy')
  if (unknown.length === 0) {
    refuseOfCall((from as Partial<StepStart>).policy, subject)
    return from as StepStart
  }
  throw new DrainableError(
    'INVALID_OPTIONS',
    `${subject}: unknown option ${unknown.map((key) => `'${key}'`).join(', ')} beside target, expected { target, policy? }`,
  )
}

/** What is a step's own, and would be given to no step but the first by a policy: said, and never ignored. */
function refuseOfCall(policy: unknown, subject: string): void {
  const given = Object(policy) as Partial<Record<string, unknown>>
  const own = ['signal', 'clock', 'onEvent', 'pace', 'tickets', 'onTicket']
  const words = own
    .filter((key) => given[key] !== undefined)
    .map((key) => `policy.${key}: give it to each step: stepDrain(lb, from, { ${key} })`)
  if (words.length > 0)
    throw new DrainableError('INVALID_OPTIONS', `${subject}: ${words.join('; ')}`)
}

function startOf(start: StepStart, subject: string): From {
  const target = parseTarget(start.target, subject)
  return {
    resolved: policyOf(start, subject),
    ticket: undefined,
    prepare: (context, its, keeper) => prepareDrain(context, its, target, subject, keeper),
  }
}

function policyOf({ policy }: StepStart, subject: string): ResolvedPolicy {
  return parsePolicy(policy === undefined ? {} : policy, subject)
}

function ticketOf(ticket: Ticket, provider: DrainableProvider, subject: string): From {
  checkTicket(ticket, provider, subject, true)
  return {
    resolved: { ...parsePolicy({}, subject), data: ticket.policy, id: ticket.id },
    ticket,
    prepare: async ({ scheduler, signal, limit }, resolved, keeper) => {
      const { capabilities } = await scheduler.describe(signal, limit())
      const policy = toResumedPolicy(ticket.policy, capabilities, subject)
      const { clock } = resolved
      const isKept = resolved.tickets !== undefined || resolved.onTicket !== undefined
      const known = isKept ? ticket : { ...ticket, members: ticket.members.map(asIntended) }
      const times = {
        now: clock.now(),
        wallOffset: wallOffsetOf(clock),
        deadline: deadlineOf(ticket, resolved),
      }
      const claims = claimsOf(known, policy, { ...times, goal: { kind: 'drain' } })
      return {
        claims: claims.map((claim, i) => asEnded(claim, ticket.members[i], times.now)),
        keeper,
      }
    },
  }
}

/** What the last step only intended may have been sent by one that crashed. Of a hold that is known; others show what they did. */
function asIntended(member: TicketMember): TicketMember {
  return member.intended === null || member.intended.kind === 'hold'
    ? member
    : { ...member, intended: null }
}

/** What the steps before have let go of stays so. */
function asEnded(
  claim: PreparedClaim,
  member: TicketMember | undefined,
  at: number,
): PreparedClaim {
  if (member?.outcome == null || !isOver(member)) return claim
  const { outcome, ref } = member
  const words = `${formatRef(ref)}: an earlier step was overruled; it was left alone`
  const error =
    outcome === 'overruled' ? new DrainableError('DRAIN_OVERRULED', words, { ref }) : null
  const ended = { outcome, at, error }
  const ending = { ...NO_ENDING, ended, holding: false }
  return { ...claim, start: { ...claim.start, overruled: outcome === 'overruled', ending } }
}
