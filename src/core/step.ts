import { randomUUID } from 'node:crypto'
import type {
  Change,
  ChangeResult,
  DrainableProvider,
  MaintEffect,
  MemberRef,
  Reading,
} from '../provider/contract.js'
import { systemClock, type Clock } from '../provider/clock.js'
import { DrainableError, isDrainableError } from '../provider/error.js'
import { parseOptions } from '../provider/options.js'
import { refKey } from '../provider/member-ref.js'
import type { Outcome, Phase, Why } from '../provider/report.js'
import { z } from 'zod'
import { nextPause } from './cadence.js'
import { emitOn } from './emitters.js'
import type { DrainEvent } from './events.js'
import { firstLook } from './first-look.js'
import { refuseAtMinimum } from './guard.js'
import { guarded } from './emitters.js'
import { laneOf, type Lane, type Look } from './lane.js'
import { Ledger } from './ledger.js'
import { dueIn, unchangedFor, workOf } from './machine/due.js'
import {
  atLeast,
  initialState,
  type DrainState,
  type Input,
  type MachinePolicy,
} from './machine/state.js'
import { absorbOnly, transition } from './machine/transition.js'
import { explain } from './machine/why.js'
import {
  callShape,
  parsePolicy,
  toMachinePolicy,
  toResumedPolicy,
  type Call,
  type Policy,
} from './policy.js'
import { worst } from './report.js'
import { parseTarget, readingsOf, type Target } from './target.js'
import { parseTicket, thawState, type Ticket } from './ticket.js'

/** A drain to be begun by {@link stepDrain}. */
export interface StepStart {
  readonly target: Target
  readonly policy?: Omit<Policy, keyof Call | 'tickets' | 'onTicket'>
}

/** What one step brought. */
export interface DrainStep {
  /** Keep it: the next step goes on from here. */
  readonly ticket: Ticket
  /** The least advanced phase of the members. */
  readonly phase: Phase
  /** There once every member has one. */
  readonly outcome?: Outcome
  readonly why: readonly Why[]
  /** Milliseconds after which the next step is worth while. 0: at once, an intended change is to be sent. */
  readonly againIn: number
}

/** One drain between two steps. */
interface Stepper {
  readonly lane: Lane
  readonly policy: MachinePolicy
  readonly ledger: Ledger
  readonly keepReady: number
  readonly onMinimum: 'fail' | 'wait'
  readonly states: Map<string, DrainState>
  /** Changes the last step announced, by member. */
  readonly intended: ReadonlyMap<string, string>
  readonly emit: (event: DrainEvent) => void
}

const ORDER: readonly Phase[] = ['active', 'draining', 'idle', 'removed']

/**
 * One look and at most one change, no timers, no state but the ticket: for callers with a queue of
 * their own (a controller's requeue, cron, serverless). The same machine as everywhere else.
 *
 * A change is first returned as intended, with `againIn` 0, and sent by the next step: so the ticket
 * that knows of it is kept before anything happens.
 *
 * @throws `TICKET_INVALID`, `NOT_FOUND`, `POOL_AT_MINIMUM`, `UNSUPPORTED`, `INVALID_OPTIONS` before anything is changed; `signal.reason` on abort
 */
export async function stepDrain(
  p: DrainableProvider,
  from: Ticket | StepStart,
  o: Call = {},
): Promise<DrainStep> {
  const given = parseOptions(z.strictObject(callShape), o, 'stepDrain()')
  const clock = given.clock ?? systemClock
  const signal = given.signal ?? new AbortController().signal
  const emit = (event: DrainEvent): void => {
    if (given.onEvent !== undefined) guarded(() => given.onEvent?.(event))
    emitOn(p, event)
  }
  const lane = laneOf(p, clock)
  if ('target' in from) {
    const { stepper, look } = await begin(p, from, lane, signal, emit)
    return advance(stepper, look, signal)
  }
  const stepper = await resume(p, parseTicket(from), lane, signal, emit)
  const refs = [...stepper.states.values()].map((state) => state.ref)
  return advance(stepper, await tryLook(lane, refs, signal), signal)
}

async function tryLook(
  lane: Lane,
  refs: readonly DrainState['ref'][],
  signal: AbortSignal,
): Promise<Look> {
  const askedAt = lane.clock.now()
  try {
    return await lane.look(refs, signal)
  } catch (error) {
    if (signal.aborted || !isDrainableError(error)) throw error
    return { error, askedAt, at: lane.clock.now() }
  }
}

function wallOffset(clock: Clock): number {
  return Date.now() - clock.now()
}

async function begin(
  provider: DrainableProvider,
  start: StepStart,
  lane: Lane,
  signal: AbortSignal,
  emit: (event: DrainEvent) => void,
): Promise<{ readonly stepper: Stepper; readonly look: Look }> {
  const subject = 'stepDrain()'
  const { data, id } = parsePolicy(start.policy ?? {}, subject)
  const target = parseTarget(start.target, subject)
  const startedAt = lane.clock.now()
  const info = await lane.describe(signal)
  const { look, readings } = await firstLook(lane, target, signal)
  const maint = readings.flatMap((reading): MaintEffect[] =>
    reading.present ? [reading.maint ?? info.capabilities.maint] : [],
  )
  const policy = toMachinePolicy(data, info.capabilities, maint, subject)
  const offset = wallOffset(lane.clock)
  const deadline = data.timeout === null ? null : startedAt + data.timeout
  const iso = (at: number): string => new Date(at + offset).toISOString()
  const ledger = new Ledger(
    {
      id: id ?? randomUUID(),
      instance: provider.instance,
      startedAt: iso(startedAt),
      deadline: deadline === null ? null : iso(deadline),
      policy: data,
    },
    { store: undefined, onTicket: undefined },
    () => wallOffset(lane.clock),
  )
  const states = new Map(
    readings.map((reading) => [
      refKey(reading.ref),
      initialState(reading.ref, startedAt, deadline),
    ]),
  )
  const { keepReady, onMinimum } = data
  return {
    look,
    stepper: { lane, policy, ledger, keepReady, onMinimum, states, intended: new Map(), emit },
  }
}

async function resume(
  provider: DrainableProvider,
  ticket: Ticket,
  lane: Lane,
  signal: AbortSignal,
  emit: (event: DrainEvent) => void,
): Promise<Stepper> {
  if (ticket.instance !== provider.instance) {
    throw new DrainableError(
      'TICKET_INVALID',
      `stepDrain(): ticket '${ticket.id}' belongs to ${ticket.instance}, this provider is ${provider.instance}`,
    )
  }
  const info = await lane.describe(signal)
  const policy = toResumedPolicy(ticket.policy, info.capabilities, 'stepDrain()')
  const offset = wallOffset(lane.clock)
  const ledger = new Ledger(ticket, { store: undefined, onTicket: undefined }, () =>
    wallOffset(lane.clock),
  )
  const forward = Date.now() >= ticket.savedAt // a wall clock that went back restarts the proof
  const intended = new Map<string, string>()
  const states = new Map<string, DrainState>()
  for (const member of ticket.members) {
    const key = refKey(member.ref)
    ledger.inherit(key, member)
    const last = member.changes.at(-1)
    if (last?.state === 'intended') intended.set(key, `${last.kind} ${last.to ?? ''}`)
    states.set(key, thawState(member.state, offset, lane.clock.now(), forward))
  }
  const { keepReady, onMinimum } = ticket.policy
  return { lane, policy, ledger, keepReady, onMinimum, states, intended, emit }
}

async function advance(stepper: Stepper, look: Look, signal: AbortSignal): Promise<DrainStep> {
  const taken: MemberRef[] = []
  try {
    return await advanceAll(stepper, look, signal, taken)
  } finally {
    for (const ref of taken) stepper.lane.reservations.release(ref)
  }
}

async function advanceAll(
  stepper: Stepper,
  look: Look,
  signal: AbortSignal,
  taken: MemberRef[],
): Promise<DrainStep> {
  const { lane, policy, ledger, states } = stepper
  const now = lane.clock.now()
  const stamp = { at: now, wall: now + wallOffset(lane.clock) }
  const send: { readonly key: string; readonly change: Change }[] = []
  let announced = false
  for (const [key, state] of states) {
    const input = toInput(look, state, stamp)
    const step = transition(state, input, policy)
    const wish = step.effects.find((effect) => effect.type === 'apply')
    if (wish === undefined) {
      states.set(key, step.state)
      for (const effect of step.effects) if (effect.type === 'emit') stepper.emit(effect.event)
      continue
    }
    const denied = wish.first ? refuse(stepper, look, state, taken) : undefined
    if (denied !== undefined) {
      const final = stepper.onMinimum === 'fail'
      if (final && [...states.values()].every(({ confirmed }) => confirmed === 'none')) throw denied
      const held = { ...stamp, type: 'denied' as const, error: denied, final }
      states.set(key, transition(step.state, held, policy).state)
      continue
    }
    if (stepper.intended.get(key) === describeChange(wish.change)) {
      states.set(key, step.state)
      for (const effect of step.effects) if (effect.type === 'emit') stepper.emit(effect.event)
      send.push({ key, change: wish.change })
      continue
    }
    states.set(key, absorbOnly(state, input, policy))
    ledger.intend(key, wish.change)
    announced = true
  }
  if (send.length > 0) await carryOut(stepper, send, signal)
  return report(stepper, announced || send.length > 0)
}

function describeChange(change: Change): string {
  return `${change.kind} ${change.kind === 'hold' ? change.to : ''}`
}

function toInput(
  look: Look,
  state: DrainState,
  stamp: { readonly at: number; readonly wall: number },
): Input {
  if (look.error !== undefined)
    return { ...stamp, type: 'unreadable', error: look.error, askedAt: look.askedAt }
  const reading: Reading = readingsOf(look.snapshot).get(refKey(state.ref)) ?? {
    ref: state.ref,
    present: false,
    scopes: [],
  }
  return { ...stamp, type: 'reading', reading, askedAt: look.askedAt }
}

/** Why a member must not be taken now; where it may, its place is reserved for this step. */
function refuse(
  stepper: Stepper,
  look: Look,
  state: DrainState,
  taken: MemberRef[],
): DrainableError | undefined {
  const { lane, keepReady } = stepper
  const reading =
    look.snapshot === undefined ? undefined : readingsOf(look.snapshot).get(refKey(state.ref))
  if (look.snapshot === undefined || reading?.present !== true) return undefined
  const refused = refuseAtMinimum(reading, look.snapshot, lane.reservations, keepReady)
  if (refused === undefined && reading.serves && !lane.reservations.has(reading.ref)) {
    lane.reservations.take(reading.ref, lane.clock.now())
    taken.push(reading.ref)
  }
  return refused
}

/** Sends what the last step announced. */
async function carryOut(
  stepper: Stepper,
  send: readonly { readonly key: string; readonly change: Change }[],
  signal: AbortSignal,
): Promise<void> {
  const { lane, policy, ledger, states } = stepper
  const results = await lane.apply(
    send.map(({ change }) => change),
    signal,
  )
  send.forEach(({ key, change }, i) => {
    const state = states.get(key)
    const result: ChangeResult | undefined = results[i]
    if (state === undefined || result === undefined) return
    // A step that crashed may have carried it out: then it stays intended, for an undo to report.
    const found = state.found?.own ?? 'unknown'
    const maybeOurs =
      change.kind === 'hold' && result.status === 'unchanged' && !atLeast(found, change.to)
    if (!maybeOurs) ledger.settle(key, change, result)
    const at = lane.clock.now()
    const step = transition(
      state,
      { type: 'result', change, result, at, wall: at + wallOffset(lane.clock) },
      policy,
    )
    states.set(key, {
      ...step.state,
      pending: step.state.pending?.state === 'lost' ? step.state.pending : null,
    })
    for (const effect of step.effects) if (effect.type === 'emit') stepper.emit(effect.event)
  })
}

function report(stepper: Stepper, again: boolean): DrainStep {
  const { lane, policy, ledger, states } = stepper
  const now = lane.clock.now()
  const all = [...states.values()]
  const ended = all.flatMap((state) => state.ended?.outcome ?? [])
  const phases = all.map((state) => ORDER.indexOf(state.phase))
  const pauses = all.map((state) =>
    nextPause({
      work: workOf(state),
      unchangedFor: unchangedFor(state, now),
      due: dueIn(state, policy, now),
      cost: lane.cost,
      floor: lane.floor,
      failures: state.blind === null ? 0 : 1,
    }),
  )
  const done = ended.length === all.length
  return {
    ticket: ledger.ticket(states),
    phase: ORDER[Math.min(...phases)] ?? 'active',
    ...(done ? { outcome: worst(ended) } : {}),
    why: all.flatMap((state) => explain(state, policy, now)),
    againIn: done || !again ? Math.round(Math.min(...pauses, Number.MAX_SAFE_INTEGER)) : 0,
  }
}
