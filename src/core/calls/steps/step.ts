import * as z from 'zod/mini'
import { isoOf, systemClock } from '../../../provider/clock.js'
import type { DrainableProvider, MemberRef } from '../../../provider/contract.js'
import { durationOption } from '../../../provider/option-schemas.js'
import { once, parseOptions, readGiven } from '../../../provider/options.js'
import type { DrainReport } from '../../../provider/report.js'
import { combinedOf } from '../../combined.js'
import { guarded } from '../../event-hub.js'
import { stepTelemetry } from '../../telemetry.js'
import type { DrainEvent } from '../../events.js'
import { FIRST_ANSWER } from '../../tickets/calls.js'
import { toGiven } from '../../tickets/options-table.js'
import type { Ticket } from '../../tickets/ticket.js'
import { TicketWriter } from '../../tickets/writing/writer.js'
import { callShape, checkProvider } from '../call-options.js'
import { paceShape, parsePolicy, ticketShape } from '../policy.js'
import { unpreparedReport } from '../run/preparation.js'
import { RunGroup } from '../run/run-group.js'
import { isOpen, Step } from './one-step.js'
import { parseFrom, policyOf, startOf, ticketOf } from './step-from.js'
import type { DrainStep, StepDone, StepOptions, StepStart } from './step-types.js'
import { namedRefs, parseTarget } from '../target.js'

const stepSchema = /* @__PURE__ */ once(() =>
  z.strictObject({
    ...callShape(),
    ...paceShape(),
    ...ticketShape(),
    limit: z.exactOptional(durationOption()),
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
  const { data, id = crypto.randomUUID(), owner } = policyOf(start, subject)
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

/** Makes a step on one balancer or on several; with those of a group, whose outcomes stand together. */
async function stepOn(
  provider: DrainableProvider,
  from: Ticket | StepStart,
  options: CheckedOptions,
  together?: RunGroup,
): Promise<StepDone> {
  const { pace, limit, tickets, onTicket, ...call } = options
  const combined = combinedOf(provider)
  if (combined !== undefined) {
    // What is idle on one of them first is so still when the last one is.
    const group = new RunGroup()
    const done = await combined.step(from, call, (part, own, onEvent) =>
      stepOn(part, own, { ...call, pace, limit, onEvent }, group),
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
  return new Step(provider, { ...begun, resolved }, limit, emit, together).go()
}
