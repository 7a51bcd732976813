import * as z from 'zod/mini'
import { aborted } from '../../../provider/abort.js'
import { systemClock } from '../../../provider/clock.js'
import type { DrainableProvider } from '../../../provider/contract.js'
import { durationOption } from '../../../provider/option-schemas.js'
import { DrainableError } from '../../../provider/error.js'
import { formatRef, refKey } from '../../../provider/member-ref.js'
import { isPromise, once, parseOptions, readGiven } from '../../../provider/options.js'
import { quote } from '../../../provider/quote.js'
import type { DrainReport } from '../../../provider/report.js'
import type { Wanted } from '../../balancer/owner.js'
import { pauseOf } from '../../balancer/look/cadence.js'
import { Alarm } from '../../balancer/look/timer.js'
import { combinedOf } from '../../combined.js'
import { startFaults } from '../../telemetry.js'
import type { DrainEvent } from '../../events.js'
import { NO_ENDING } from '../../member/record.js'
import { loadOf, type ClaimedMember } from '../../member/claimed.js'
import { sameChange } from '../../member/whose.js'
import { FIRST_ANSWER } from '../../tickets/calls.js'
import { isOver } from '../../tickets/member.js'
import {
  checkTicket,
  isJsonText,
  parseTicket,
  type Ticket,
  type TicketMember,
} from '../../tickets/ticket.js'
import { TicketWriter } from '../../tickets/writing/writer.js'
import { callShape, checkProvider } from '../call-options.js'
import {
  baseSpec,
  claimsOf,
  deadlineOf,
  newKeeper,
  sameKeeper,
  wallOffsetOf,
} from '../drain-run.js'
import {
  paceShape,
  parsePolicy,
  ticketShape,
  toResumedPolicy,
  type ResolvedPolicy,
} from '../policy.js'
import { prepareDrain } from '../prepare-drain.js'
import type { Prepared, PreparedClaim, RunContext, RunSpec } from '../run/run-spec.js'
import { Run } from '../run/run.js'
import { stepLimit } from './step-limit.js'
import { leastAdvanced, type DrainStep, type StepOptions, type StepStart } from './step-types.js'
import { parseTarget } from '../target.js'

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
  const { onEvent, signal } = call
  signal?.throwIfAborted()
  const combined = combinedOf(provider)
  if (combined !== undefined) {
    const step = await combined.step(begun, call, (part, own, hear) =>
      stepDrain(part, own, { ...call, pace, limit, onEvent: hear }),
    )
    // A part sends what it has announced in the step before: by then the whole ticket is kept.
    const { ticket } = step
    const targets = { store: tickets, onTicket }
    const writer = new TicketWriter(ticket.id, targets, call.clock ?? systemClock, ticket.lease)
    if (writer.kept) await writer.save(() => ticket, FIRST_ANSWER)
    return step
  }
  const hear = startFaults(provider, onEvent)
  const emit = (event: DrainEvent): void => {
    // The end of a step is not the end of the drain.
    if (event.type !== 'end') hear(event)
  }
  const base = parsePolicy({}, subject)
  const its = { clock: call.clock ?? base.clock, signal, onEvent, pace, tickets, onTicket }
  const step = readGiven(`${subject}: from`, () =>
    'target' in begun ? startOf(begun, subject) : ticketOf(begun, provider, subject),
  )
  return new Step(provider, { ...step, resolved: { ...step.resolved, ...its } }, limit, emit).go()
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

/** What a step begins with: a target, or a ticket. */
interface From {
  readonly resolved: ResolvedPolicy
  readonly ticket: Ticket | undefined
  readonly prepare: (
    context: RunContext,
    resolved: ResolvedPolicy,
    keeper: ReturnType<RunSpec['keeper']>,
  ) => Promise<Prepared>
}

function startOf(start: StepStart, subject: string): From {
  const target = parseTarget(start.target, subject)
  const resolved = parsePolicy(start.policy === undefined ? {} : start.policy, subject)
  return {
    resolved,
    ticket: undefined,
    prepare: (context, its, keeper) => prepareDrain(context, its, target, subject, keeper),
  }
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
    { resolved, ticket, prepare }: From,
    limit: number | undefined,
    emit: (event: DrainEvent) => void,
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
      alarm.set(this.#limit, () => this.#end())
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

  /** Ends the step where waiting longer tells nothing: there is work, no place, or no answer. */
  #check(): void {
    const now = this.#spec.clock.now()
    if (this.#run.claimedMembers.some((claimed) => isWaiting(claimed, now))) this.#end()
  }

  #failure(report: DrainReport): unknown {
    const { signal, subject } = this.#spec
    if (signal?.aborted === true) return signal.reason
    return report.error ?? new DrainableError('PROVIDER_FAILED', `${subject}: it could not begin`)
  }

  #describe(): DrainStep {
    const { claimedMembers } = this.#run
    const report = this.#run.report()
    const isDone = claimedMembers.every(({ claim }) => claim.ending.ended !== null)
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
