import * as z from 'zod'
import type { Change, DrainableProvider } from '../../provider/contract.js'
import { pause } from '../../provider/clock.js'
import { DrainableError, isDrainableError } from '../../provider/error.js'
import { refKey } from '../../provider/member-ref.js'
import { isPromise, parseOptions } from '../../provider/options.js'
import { quote } from '../../provider/quote.js'
import type { DrainReport } from '../../provider/report.js'
import type { DrainEvent } from '../events.js'
import { beginCombined, stepCombined, type StepOne } from '../combined/step.js'
import { partsOf } from '../combined/parts.js'
import { quietAt } from '../machine/due.js'
import type { DrainState } from '../machine/state.js'
import { transition } from '../machine/transition.js'
import { guarded } from '../emitter.js'
import type { Look } from '../runner/look/look.js'
import type { Members } from '../runner/members.js'
import { pauseOf } from '../runner/look/pause-of.js'
import { Run } from '../runner/run.js'
import type { Prepared, RunSpec } from '../runner/run-spec.js'
import { gapSince, restart, thawStep } from '../tickets/thaw.js'
import { checkTicket, isJsonText, parseTicket, type Ticket } from '../tickets/ticket.js'
import { callShape, checkProvider, type Call } from './call.js'
import { paceShape, parsePolicy, toResumedPolicy, type ResolvedPolicy } from './policy.js'
import { prepareDrain } from './prepare-drain.js'
import { baseSpec, newKeeper, sameKeeper, wallOffsetOf } from './spec.js'
import { leastAdvanced, type DrainStep, type StepOptions, type StepStart } from './step-types.js'
import { parseTarget } from './target.js'
import { once } from '../../provider/once.js'

const stepSchema = once(() => z.strictObject({ ...callShape(), ...paceShape() }))

export type { DrainStep, StepOptions, StepStart } from './step-types.js'

/**
 * Makes one step of a drain: one look and at most one change. No timer outlives the call, and the ticket is the only
 * state: for callers with their own queue (a controller's requeue, cron, serverless). It runs the same machine as
 * `drain()`.
 *
 * A step first returns a change as intended, with `againIn` 0, and the next step sends it: so the caller keeps the
 * ticket with the change before anything happens. On another machine than the last step's, only wall time says how
 * long ago that step was, so the step that would decide idle looks twice there, as far apart as the rule needs.
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
 *   const step = await stepDrain(lb, kept ?? { target, policy: { timeout: '10m' } })
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
  const begun = parseFrom(from, subject)
  const { pace, ...call } = parseOptions(stepSchema(), options, subject)
  const onEvent = call.onEvent
  const emit = (event: DrainEvent): void => {
    // The end of a step is not the end of the drain.
    if (event.type !== 'end' && onEvent !== undefined) guarded(() => onEvent(event))
  }
  call.signal?.throwIfAborted()
  const parts = partsOf(provider)
  if (parts !== undefined) {
    const one: StepOne = (part, own, hear) => stepDrain(part, own, { ...call, pace, onEvent: hear })
    return 'target' in begun
      ? beginCombined(provider, parts, begun, call, one)
      : stepCombined(provider, parts, begun, call, one)
  }
  const step =
    'target' in begun
      ? beginStep(provider, begun, { ...call, pace }, subject, emit)
      : resumeStep(provider, begun, { ...call, pace }, subject, emit)
  return step.go()
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
  const has = (key: string): boolean => given[key] !== undefined
  const own = ['signal', 'clock', 'onEvent', 'pace'].filter(has)
  const kept = ['tickets', 'onTicket'].filter(has)
  const words = [
    ...own.map((key) => `policy.${key}: give it to each step: stepDrain(lb, from, { ${key} })`),
    ...kept.map((key) => `policy.${key}: leave it out and keep the ticket that each step gives`),
  ]
  if (words.length > 0)
    throw new DrainableError('INVALID_OPTIONS', `${subject}: ${words.join('; ')}`)
}

function beginStep(
  provider: DrainableProvider,
  start: StepStart,
  call: OneCall,
  subject: string,
  emit: (event: DrainEvent) => void,
): Step {
  const target = parseTarget(start.target, subject)
  const resolved: ResolvedPolicy = {
    ...parsePolicy(start.policy === undefined ? {} : start.policy, subject),
    ...withCall(call, parsePolicy({}, subject)),
  }
  const keeper = newKeeper(resolved, provider, 'nobody')
  const spec: RunSpec = {
    ...baseSpec(provider, resolved, subject, emit),
    side: 'drain',
    onAbort: 'leave',
    patient: false, // whoever makes the steps waits
    announced: new Map(),
    keeper: () => keeper,
    prepare: (context) => prepareDrain(context, resolved, target, subject, keeper),
  }
  return new Step(spec)
}

/** The checked options of one step. */
type OneCall = Call & Pick<ResolvedPolicy, 'pace'>

/** A policy with the fields of the call itself put over it. */
function withCall(
  { clock, signal, onEvent, pace }: OneCall,
  base: ResolvedPolicy,
): Pick<ResolvedPolicy, 'clock' | 'signal' | 'onEvent' | 'pace'> {
  return { clock: clock ?? base.clock, signal, onEvent, pace }
}

function resumeStep(
  provider: DrainableProvider,
  ticket: Ticket,
  call: OneCall,
  subject: string,
  emit: (event: DrainEvent) => void,
): Step {
  checkTicket(ticket, provider, subject, true)
  const base = parsePolicy({}, subject)
  const resolved: ResolvedPolicy = { ...base, data: ticket.policy, ...withCall(call, base) }
  const { clock } = resolved
  const keeper = sameKeeper(ticket, resolved, 'nobody')
  const gap = gapSince(ticket.saved, clock)
  const announced = new Map<string, Change>()
  for (const member of ticket.members) {
    const { intended } = member.state.hold
    if (intended !== null) announced.set(refKey(member.ref), intended)
  }
  const spec: RunSpec = {
    ...baseSpec(provider, resolved, subject, emit),
    side: 'drain',
    onAbort: 'leave',
    patient: false, // whoever makes the steps waits
    timeout: null,
    announced,
    keeper: () => keeper,
    prepare: async ({ scheduler, signal, limit }): Promise<Prepared> => {
      const info = await scheduler.describe(signal, limit())
      const wallOffset = wallOffsetOf(clock)
      const deadline = ticket.deadline === null ? null : Date.parse(ticket.deadline) - wallOffset
      const now = clock.now()
      const options = { now, wallOffset, goal: { kind: 'drain' as const }, deadline }
      return {
        policy: toResumedPolicy(ticket.policy, info.capabilities, subject),
        states: ticket.members.map((member) => thawStep(member, ticket.saved, gap, options)),
        keeper,
      }
    },
  }
  return new Step(spec)
}

/** One step in progress. */
class Step {
  readonly #spec: RunSpec

  constructor(spec: RunSpec) {
    this.#spec = spec
  }

  async go(): Promise<DrainStep> {
    const run = new Run(this.#spec)
    try {
      await run.prepared
      const { parts } = run
      if (parts === undefined) throw this.#failure(await run.done)
      const { members, sender } = parts
      const look = run.first ?? (await this.#look(run))
      if (wouldJudge(members, look)) await this.#lookTwice(run, members, look)
      else await run.step(look)
      this.#spec.signal?.throwIfAborted()
      return describe(run, members, members.announcing || sender.sent, this.#spec.pace)
    } finally {
      await run.release()
    }
  }

  #failure(report: DrainReport): unknown {
    const { signal, subject } = this.#spec
    if (signal?.aborted === true) return signal.reason
    return report.error ?? new DrainableError('PROVIDER_FAILED', `${subject}: it could not begin`)
  }

  async #look({ scheduler, refs }: Run): Promise<Look> {
    const { clock, signal = new AbortController().signal } = this.#spec
    const askedAt = clock.now()
    try {
      return await scheduler.look(refs(), signal)
    } catch (error) {
      if (signal.aborted || !isDrainableError(error)) throw error
      const at = clock.now()
      return { error, askedAt, at, took: at - askedAt }
    }
  }

  /** Quiet time measured on another machine does not count: it begins anew, and the second look sees its end. */
  async #lookTwice(run: Run, members: Members, look: Look): Promise<void> {
    const { clock, signal } = this.#spec
    const now = clock.now()
    members.replace((state) => startAnew(state, now))
    await run.step(look)
    const quiet = members.all.map((state) => quietAt(state, members.policy, clock.now()))
    const wait = Math.max(0, ...quiet.map((at) => (at ?? 0) - clock.now()))
    if (members.announcing || members.all.some(({ ending }) => ending.ended !== null)) return
    const { settle, capabilities } = members.policy
    const most = Math.max(settle, capabilities.blind) + capabilities.freshness + 1_000
    await pause(clock, Math.min(wait, most), signal)
    const second = await this.#look(run)
    await run.step(second)
  }
}

/** Whether a look would decide idle by a quiet time that was measured across the clocks of two machines. */
function wouldJudge(members: Members, look: Look): boolean {
  return members.all.some((state) => {
    if (!state.proof.isForeign || state.proof.verdict !== null) return false
    const input = members.stamp(members.inputOf(look, state))
    return transition(state, input, members.policy).state.proof.verdict !== null
  })
}

function startAnew(state: DrainState, now: number): DrainState {
  if (state.phase === 'idle' || state.proof.verdict !== null) return state
  const scopes = new Map(
    [...state.proof.scopes].map(([name, track]) => [name, restart(track, now)]),
  )
  return { ...state, proof: { ...state.proof, scopes, isForeign: false } }
}

/**
 * Shortest default pause between steps, in milliseconds: a step costs more than a look, because the caller stores a
 * ticket and requeues.
 */
const STEP_PAUSE = 500

function describe(run: Run, members: Members, again: boolean, pace: number | undefined): DrainStep {
  const states = members.all
  const { scheduler, startedAt } = run
  const now = scheduler.clock.now()
  const report = members.report(startedAt)
  const done = states.every((state) => state.ending.ended !== null)
  const wait = pauseOf({
    states,
    policy: members.policy,
    scheduler,
    now,
    failures: states.some((state) => state.unread !== null) ? 1 : 0,
    held: false,
    acting: false,
    fastest: STEP_PAUSE,
  })
  return {
    ticket: run.ticketNow(),
    phase: leastAdvanced(states.map((state) => state.phase)),
    ...(done ? { outcome: report.outcome } : {}),
    why: members.why(),
    againIn: done || !again ? Math.round(Math.max(wait, pace ?? 0)) : 0,
  }
}
