import { channel } from 'node:diagnostics_channel'
import type { DebugLogger } from 'node:util'
import type {
  AdminState,
  Change,
  ChangeResult,
  DrainableProvider,
  MemberRef,
  Snapshot,
} from '../provider/contract.js'
import { nodeUtil } from '../provider/builtins.js'
import { toDrainableError, type DrainableError } from '../provider/error.js'
import type { Proof } from '../provider/report.js'
import { guarded } from './event-hub.js'
import type { DrainEvent, FaultEvent } from './events.js'
import type { RollEvent } from '../fleet/roll/events.js'

/** Where something happens. */
export interface TelemetrySource {
  /** The provider's name, such as `haproxy-runtime`. */
  readonly provider: string
  /** The balancer's own name, such as `unix:/run/haproxy/admin.sock`. It holds no secret. */
  readonly instance: string
}

/** A call begins: the first message of its `run`. */
export interface BeginEvent {
  readonly type: 'begin'
  /** When it happened, ISO 8601. */
  readonly at: string
  /** The members that the call names; empty if it names a pool, an address or a ticket, or is a roll. */
  readonly refs: readonly MemberRef[]
}

/** A message of the channel `drainable:drain`: each event of a drain or a watch, from `begin` to `end`. */
export interface DrainMessage extends TelemetrySource {
  /**
   * The number of the call: the same in all of its messages, and no other call of this process has it. A drain that is
   * made of steps (`stepDrain`) has `ticket:` and the id of its ticket, in each of its steps and in each process.
   */
  readonly run: string
  readonly verb: 'drain' | 'watch'
  /** An event as its handle emits it. */
  readonly event: BeginEvent | DrainEvent
}

/**
 * A message of the channel `drainable:roll`: each event of a roll itself, from `begin` to `roll-end`. The drains of its
 * servers are runs of their own.
 */
export interface RollMessage extends TelemetrySource {
  readonly run: string
  readonly verb: 'roll'
  readonly event: BeginEvent | RollEvent
}

/** A message of the channel `drainable:fault`: what went wrong and ended nothing. */
export interface FaultMessage extends TelemetrySource {
  readonly at: string
  readonly ref: MemberRef
  readonly error: DrainableError
}

/** A message of the channel `drainable:change`: one member was changed, or not. Many are sent in one call. */
export interface ChangeMessage extends TelemetrySource {
  readonly at: string
  readonly ref: MemberRef
  readonly kind: Change['kind']
  /** The admin state that was asked for; absent where the change sets none. */
  readonly to?: AdminState
  /** The answer; `unknown` also if there was none. */
  readonly status: ChangeResult['status']
  /** Milliseconds from the call to its answer. */
  readonly took: number
  readonly error?: DrainableError
}

/** A message of the channel `drainable:look`: the balancer was read. */
export interface LookMessage extends TelemetrySource {
  readonly at: string
  /** How many members were asked for. */
  readonly members: number | 'all'
  /** Milliseconds from the call to its answer. */
  readonly took: number
  /** Why it failed; absent if it did not. */
  readonly error?: DrainableError
}

/** The channels of `node:diagnostics_channel` that this package publishes to, and what each message is. */
export interface TelemetryChannels {
  readonly 'drainable:drain': DrainMessage
  readonly 'drainable:roll': RollMessage
  readonly 'drainable:change': ChangeMessage
  readonly 'drainable:look': LookMessage
  readonly 'drainable:fault': FaultMessage
}

type Name = keyof TelemetryChannels

/** Whether anybody listens: `NODE_DEBUG=drainable` prints each message. */
function isHeard(name: Name): boolean {
  return channel(name).hasSubscribers || debug().enabled
}

let logger: DebugLogger | undefined

function debug(): DebugLogger {
  return (logger ??= nodeUtil().debuglog('drainable'))
}

/** A subscriber that throws is Node's to report: it ends nothing here. */
function publish<N extends Name>(name: N, message: TelemetryChannels[N]): void {
  channel(name).publish(message)
  if (debug().enabled) debug()('%s %s', name, JSON.stringify(message, inShort))
}

/** What a line of `NODE_DEBUG=drainable` says of an error or a proof, and what is too long for it. */
function inShort(key: string, value: unknown): unknown {
  if (key === 'report' || key === 'scopes') return undefined
  if (value instanceof Error) return value.message
  return key === 'proof' ? (value as Proof).text : value
}

function sourceOf({ name, instance }: DrainableProvider): TelemetrySource {
  return { provider: name, instance }
}

/** What publishes the events of one call. */
export interface RunTelemetry {
  event(event: BeginEvent | DrainEvent | RollEvent): void
}

/** Begins to publish the events of one call, for whoever listens now or later. */
export function startTelemetry(
  provider: DrainableProvider,
  verb: 'drain' | 'watch' | 'roll',
  refs: readonly MemberRef[] = [],
): RunTelemetry {
  const telemetry = runTelemetry(provider, verb, nextRun())
  telemetry.event({ type: 'begin', at: new Date().toISOString(), refs })
  return telemetry
}

/**
 * Publishes the events of one step of a drain: all steps of a drain are one run, in each process that makes them.
 *
 * @param id - the id of its ticket
 * @param refs - the members that the drain names, if this is its first step
 */
export function stepTelemetry(
  provider: DrainableProvider,
  id: string,
  refs: readonly MemberRef[] | undefined,
): RunTelemetry {
  const telemetry = runTelemetry(provider, 'drain', `ticket:${id}`)
  if (refs !== undefined) telemetry.event({ type: 'begin', at: new Date().toISOString(), refs })
  return telemetry
}

function runTelemetry(
  provider: DrainableProvider,
  verb: 'drain' | 'watch' | 'roll',
  run: string,
): RunTelemetry {
  const name = verb === 'roll' ? 'drainable:roll' : 'drainable:drain'
  const say = (event: BeginEvent | DrainEvent | RollEvent): void => {
    if (!isHeard(name) && !isHeard('drainable:fault')) return
    // A roll passes on the events of its drains, which have published them.
    if (published.has(event)) return
    published.add(event)
    const source = sourceOf(provider)
    publish(name, { run, verb, ...source, event } as DrainMessage & RollMessage)
    if (event.type === 'fault') publishFault(source, event)
  }
  return { event: say }
}

function publishFault(source: TelemetrySource, { at, ref, error }: FaultEvent): void {
  publish('drainable:fault', { ...source, at, ref, error })
}

const published = new WeakSet<object>()

/**
 * Makes what hears the events of a call without a handle (an opening, an undo): its `onEvent`, and whoever
 * listens for faults. Its beginning and end are no drain's, so they are not published.
 */
export function startFaults(
  provider: DrainableProvider,
  onEvent: ((event: DrainEvent) => void) | undefined,
): (event: DrainEvent) => void {
  return (event) => {
    if (event.type === 'fault' && isHeard('drainable:fault') && !published.has(event)) {
      published.add(event)
      publishFault(sourceOf(provider), event)
    }
    if (onEvent !== undefined) guarded(() => onEvent(event))
  }
}

/** Both copies of this module, ESM and CommonJS, count together. */
function nextRun(): string {
  const home = globalThis as { [RUNS]?: number }
  home[RUNS] = (home[RUNS] ?? 0) + 1
  return String(home[RUNS])
}

const RUNS = Symbol.for('drainable.runs')

/** Publishes a look, if anybody listens. */
export async function tracedLook(
  provider: DrainableProvider,
  refs: readonly MemberRef[] | 'all',
  look: () => Promise<Snapshot>,
): Promise<Snapshot> {
  if (!isHeard('drainable:look')) return look()
  const began = performance.now()
  const say = (error?: DrainableError): void => {
    publish('drainable:look', {
      ...sourceOf(provider),
      at: new Date().toISOString(),
      members: refs === 'all' ? refs : refs.length,
      took: performance.now() - began,
      ...(error === undefined ? {} : { error }),
    })
  }
  try {
    const snapshot = await look()
    say()
    return snapshot
  } catch (error) {
    say(toDrainableError(error, provider.name, 'observe'))
    throw error
  }
}

/** What publishes each answer to one call that changes members; undefined if nobody listens. */
export function startChanges(
  provider: DrainableProvider,
): ((change: Change, result: ChangeResult) => void) | undefined {
  if (!isHeard('drainable:change')) return undefined
  const began = performance.now()
  return (change, result) => {
    publish('drainable:change', {
      ...sourceOf(provider),
      at: new Date().toISOString(),
      ref: change.ref,
      kind: change.kind,
      ...('to' in change ? { to: change.to } : {}),
      status: result.status,
      took: performance.now() - began,
      ...('error' in result ? { error: result.error } : {}),
    })
  }
}
