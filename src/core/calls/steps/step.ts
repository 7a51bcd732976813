import * as z from 'zod/mini'
import { aborted } from '../../../provider/abort.js'
import { systemClock } from '../../../provider/clock.js'
import type { DrainableProvider } from '../../../provider/contract.js'
import { durationOption } from '../../../provider/option-schemas.js'
import { DrainableError } from '../../../provider/error.js'
import { refKey } from '../../../provider/member-ref.js'
import { once, parseOptions, readGiven } from '../../../provider/options.js'
import type { DrainReport } from '../../../provider/report.js'
import type { Wanted } from '../../balancer/owner.js'
import { pauseOf } from '../../balancer/look/cadence.js'
import { Alarm } from '../../balancer/look/timer.js'
import { combinedOf } from '../../combined.js'
import { startFaults } from '../../telemetry.js'
import type { DrainEvent } from '../../events.js'
import { loadOf, type ClaimedMember } from '../../member/claimed.js'
import { sameChange } from '../../member/whose.js'
import { FIRST_ANSWER } from '../../tickets/calls.js'
import type { Ticket, TicketMember } from '../../tickets/ticket.js'
import { TicketWriter } from '../../tickets/writing/writer.js'
import { callShape, checkProvider } from '../call-options.js'
import { baseSpec, newKeeper, sameKeeper } from '../drain-run.js'
import { paceShape, parsePolicy, ticketShape } from '../policy.js'
import type { RunSpec } from '../run/run-spec.js'
import { Run } from '../run/run.js'
import { RunGroup } from '../run/run-group.js'
import { parseFrom, startOf, ticketOf, type StepFrom } from './step-from.js'
import { stepLimit } from './step-limit.js'
import { leastAdvanced, type DrainStep, type StepOptions, type StepStart } from './step-types.js'

const stepSchema = /* @__PURE__ */ once(() =>
  z.strictObject({
    ...callShape(),
    ...paceShape(),
    ...ticketShape(),
    limit: z.exactOptional(durationOption({ bareSeconds: 'refuse' })),
  }),
)

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
  const subject = 'stepDrain()'
  checkProvider(provider, subject)
  const begun = readGiven(`${subject}: from`, () => parseFrom(from, subject))
  const { pace, limit, tickets, onTicket, ...call } = parseOptions(stepSchema(), options, subject)
  call.signal?.throwIfAborted()
  const combined = combinedOf(provider)
  if (combined !== undefined) {
    // What is idle on one of them first is so still when the last one is.
    const group = new RunGroup()
    const step = await combined.step(begun, call, (part, own, hear) =>
      stepOn(part, own, { ...call, pace, limit, onEvent: hear }, group),
    )
    // A part sends what it has announced in the step before: by then the whole ticket is kept.
    const { ticket } = step
    const targets = { store: tickets, onTicket }
    const writer = new TicketWriter(ticket.id, targets, call.clock ?? systemClock, ticket.lease)
    if (writer.kept) await writer.save(() => ticket, FIRST_ANSWER)
    return step
  }
  return stepOn(provider, begun, { ...call, pace, limit, tickets, onTicket })
}

/** What a step on one balancer is given: of several, all but the ticket's own. */
type StepCall = Omit<StepOptions, 'pace' | 'limit'> & {
  readonly pace: number | undefined
  readonly limit: number | undefined
}

/** One step on one balancer; with those of a group, whose outcomes stand together. */
async function stepOn(
  provider: DrainableProvider,
  begun: Ticket | StepStart,
  { clock, signal, onEvent, pace, limit, tickets, onTicket }: StepCall,
  group?: RunGroup,
): Promise<DrainStep> {
  const subject = 'stepDrain()'
  const hear = startFaults(provider, onEvent)
  const emit = (event: DrainEvent): void => {
    // The end of a step is not the end of the drain.
    if (event.type !== 'end') hear(event)
  }
  const base = parsePolicy({}, subject)
  const its = { clock: clock ?? base.clock, signal, onEvent, pace, tickets, onTicket }
  const step = readGiven(`${subject}: from`, () =>
    'target' in begun ? startOf(begun, subject) : ticketOf(begun, provider, subject),
  )
  const from = { ...step, resolved: { ...step.resolved, ...its } }
  return new Step(provider, from, limit, emit, group).go()
}

/** One step in progress: a short drain that lets go again. */
class Step {
  readonly #run: Run
  readonly #spec: RunSpec
  readonly #pace: number | undefined
  readonly #intended: ReadonlyMap<string, TicketMember['intended']>
  readonly #isKept: boolean
  /** Resolves when the step is over before its time. */
  readonly #over: Promise<void>
  #end: () => void = () => undefined
  #limit = Infinity
  #isIntending = false

  constructor(
    provider: DrainableProvider,
    { resolved, ticket, prepare }: StepFrom,
    limit: number | undefined,
    emit: (event: DrainEvent) => void,
    group: RunGroup | undefined,
  ) {
    const subject = 'stepDrain()'
    const { clock, data, tickets, onTicket, pace } = resolved
    this.#over = new Promise((resolve) => (this.#end = resolve))
    this.#pace = pace
    this.#isKept = tickets !== undefined || onTicket !== undefined
    this.#intended = new Map(
      ticket?.members.map((member) => [refKey(member.ref), member.intended] as const),
    )
    const keeper =
      ticket === undefined
        ? newKeeper(resolved, provider, 'nobody')
        : sameKeeper(ticket, resolved, 'nobody')
    this.#spec = {
      ...baseSpec(provider, { ...resolved, pace: undefined }, subject, emit),
      side: 'drain',
      onAbort: 'leave',
      patient: false, // whoever makes the steps waits
      timeout: ticket === undefined ? data.timeout : null,
      step: {
        intend: (changes, stop) => this.#intend(changes, stop),
        changed: () => this.#check(),
      },
      keeper: () => keeper,
      ...(group === undefined ? {} : { group }),
      prepare: async (context) => {
        const { capabilities } = await context.scheduler.describe(context.signal, context.limit())
        this.#limit = clock.now() + stepLimit(resolved, capabilities, limit, subject)
        return prepare(context, resolved, keeper)
      },
    }
    this.#run = new Run(this.#spec)
  }

  async go(): Promise<DrainStep> {
    const run = this.#run
    const { clock, signal } = this.#spec
    const alarm = new Alarm(clock, () => this.#end())
    try {
      await run.prepared
      if (run.claimedMembers.length === 0) throw this.#failure(await run.done)
      alarm.set(this.#limit, () => this.#check())
      this.#check()
      await Promise.race([this.#over, run.done])
      signal?.throwIfAborted()
      return this.#describe()
    } finally {
      alarm.clear()
      await run.release()
      await run.called()
    }
  }

  /** A change that the ticket of the last step does not have is kept by the caller first. */
  async #intend(changes: readonly Wanted[], stop: AbortSignal): Promise<void> {
    if (this.#isKept) return
    const isKnown = ({ change }: Wanted): boolean => {
      if (change.kind === 'restore') return true // what was lost with a crash is then another client's opening
      const known = this.#intended.get(refKey(change.ref))
      if (known == null) return false
      // A removal that is refused at work is asked for again once that is cut.
      return sameChange(known, change) || (known.kind === 'remove' && change.kind === 'terminate')
    }
    if (changes.every(isKnown)) return
    this.#isIntending = true
    this.#end()
    await aborted(stop)
  }

  /** Ends the step where waiting longer tells nothing: its time is over, or there is work, no place, or no answer. */
  #check(): void {
    const now = this.#spec.clock.now()
    const isLate = now >= this.#limit && !this.#awaitsOthers
    if (isLate || this.#run.claimedMembers.some((claimed) => isWaiting(claimed, now))) this.#end()
  }

  /** Whether it has its outcome, which stands once those on the other balancers have theirs: their time bounds that. */
  get #awaitsOthers(): boolean {
    return this.#run.standing.state === 'ended'
  }

  #failure(report: DrainReport): unknown {
    const { signal, subject } = this.#spec
    if (signal?.aborted === true) return signal.reason
    return report.error ?? new DrainableError('PROVIDER_FAILED', `${subject}: it could not begin`)
  }

  #describe(): DrainStep {
    const { claimedMembers } = this.#run
    const report = this.#run.report()
    const { state } = this.#run.standing
    const hasEnded = claimedMembers.every(({ claim }) => claim.ending.ended !== null)
    const isDone = hasEnded && (state === 'closing' || state === 'closed')
    const scheduler = this.#run.scheduler
    const now = this.#spec.clock.now()
    // Where one waits, the next step would end at once too: what is due for the proof of another member begins anew in it.
    const waiting = claimedMembers.filter((claimed) => isWaiting(claimed, now))
    const wait = pauseOf({
      claimedMembers: waiting.length > 0 ? waiting : claimedMembers,
      scheduler,
      now,
      failures: claimedMembers.some(({ facts }) => facts.unread !== null) ? 1 : 0,
      held: false,
      acting: false,
      fastest: STEP_PAUSE,
    })
    const isAtOnce = this.#isIntending && !isDone
    return {
      ticket: this.#run.ticketNow(),
      phase: leastAdvanced(claimedMembers.map(({ claim }) => claim.phase)),
      ...(isDone ? { outcome: report.outcome } : {}),
      why: this.#run.why(),
      againIn: isAtOnce ? 0 : Math.round(Math.max(wait, this.#pace ?? 0)),
    }
  }
}

/** Whether a member shows no sooner end than the next step: work in flight, no place in the floor, or no answer. */
function isWaiting({ claim, facts, ledger }: ClaimedMember, now: number): boolean {
  const { ending, deadline, proof, atMinimum, wish } = claim
  if (ending.ended !== null || ledger.pending !== null || facts.last === null)
    return facts.unread !== null
  if (deadline !== null && now >= deadline) return false
  if (facts.unread !== null || (atMinimum && wish === 'none')) return true
  const isSeen = proof.effectiveSince !== null && facts.last.askedAt > ledger.answeredAt
  return isSeen && loadOf({ claim }) > 0
}

/**
 * Shortest default pause between steps, in milliseconds: a step costs more than a look, because the caller stores a
 * ticket and requeues.
 */
const STEP_PAUSE = 500
