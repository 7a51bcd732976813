import { aborted } from '../../../provider/abort.js'
import { wallOf } from '../../../provider/clock.js'
import type { DrainableProvider } from '../../../provider/contract.js'
import { DrainableError } from '../../../provider/error.js'
import { refKey } from '../../../provider/member-ref.js'
import type { DrainReport } from '../../../provider/report.js'
import type { Wanted } from '../../balancer/owner.js'
import { pauseOf } from '../../balancer/look/cadence.js'
import { Alarm } from '../../balancer/look/timer.js'
import type { DrainEvent } from '../../events.js'
import { loadOf, type ClaimedMember } from '../../member/claimed.js'
import { sameChange } from '../../member/whose.js'
import type { Ticket, TicketMember } from '../../tickets/ticket.js'
import { baseSpec, newKeeper, sameKeeper } from '../drain-run.js'
import type { RunSpec } from '../run/run-spec.js'
import { Run } from '../run/run.js'
import type { RunGroup } from '../run/run-group.js'
import type { StepFrom } from './step-from.js'
import { stepLimit } from './step-limit.js'
import { leastAdvanced, type StepDone } from './step-types.js'

/** One step in progress: a short drain that lets go again. */
export class Step {
  readonly #run: Run
  readonly #spec: RunSpec
  readonly #ticket: Ticket | undefined
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
    this.#ticket = ticket
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
        last: (report) => this.#last(report),
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

  async go(): Promise<StepDone> {
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

  #describe(): StepDone {
    const { claimedMembers } = this.#run
    const report = this.#whole(this.#run.report())
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
    const step = {
      ticket: this.#run.ticketNow(),
      phase: leastAdvanced(claimedMembers.map(({ claim }) => claim.phase)),
      ...(isDone ? { outcome: report.outcome } : {}),
      why: this.#run.why(),
      againIn: isAtOnce ? 0 : Math.round(Math.max(wait, this.#pace ?? 0)),
    }
    return { step, report }
  }

  /** A report of the drain as a whole: the run knows how long this step took. */
  #whole(report: DrainReport): DrainReport {
    if (this.#ticket === undefined) return report
    const elapsed = wallOf(this.#spec.clock) - Date.parse(this.#ticket.startedAt)
    return { ...report, elapsed: Math.max(Math.round(elapsed), report.elapsed) }
  }

  /** What the provider's own listeners are told at the end of the step: nothing while the drain goes on. */
  #last(report: DrainReport): DrainReport | undefined {
    const isOver = report.members.length === 0 ? this.#ticket === undefined : isOpen(this.#ticket)
    return isOver && report.outcome !== 'aborted' ? this.#whole(report) : undefined
  }
}

/** Whether a drain was still to come to its end before a step of it; without a ticket it is the first. */
export function isOpen(ticket: Ticket | undefined): boolean {
  return ticket?.members.every(({ outcome }) => outcome !== null) !== true
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
