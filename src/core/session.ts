import { randomUUID } from 'node:crypto'
import type { DrainableProvider } from '../provider/contract.js'
import { DrainableError, isDrainableError } from '../provider/error.js'
import type { DrainReport, Why } from '../provider/report.js'
import { abortable, settledWithin, toDrainableError } from './call.js'
import { emitOn } from './emitters.js'
import type { DrainEvent } from './events.js'
import type { EventHub, HandleBody } from './handle.js'
import { laneOf, type Lane, type Look } from './lane.js'
import { Ledger } from './ledger.js'
import type { DrainState, MachinePolicy } from './machine/state.js'
import type { ResolvedPolicy } from './policy.js'
import { nothingLeft, restoreMembers } from './restore.js'
import { DrainRun } from './run.js'
import type { Ticket } from './ticket.js'
import { dropTicket } from './ticket-store.js'

/** Epoch milliseconds minus the drain's clock, as of now. */
export function wallOffsetOf(lane: Lane): () => number {
  return () => Date.now() - lane.clock.now()
}

/** What a drain needs before it can run. */
export interface Prepared {
  readonly policy: MachinePolicy
  readonly states: readonly DrainState[]
  readonly ledger: Ledger
  readonly first?: Look
}

/** How long an undo waits for a change that is under way, in milliseconds. */
const SETTLE_LIMIT = 5_000
/** How long an end waits for a ticket store, in milliseconds. */
const STORE_LIMIT = 2_000

/** Everything about one drain, from the first look to the release. */
export class Session implements HandleBody {
  readonly done: Promise<DrainReport>
  readonly #provider: DrainableProvider
  readonly #resolved: ResolvedPolicy
  readonly #lane: Lane
  readonly #hub: EventHub
  readonly #startedAt: number
  readonly #stop = new AbortController()
  readonly #prepare: (session: Session) => Promise<Prepared>
  readonly #subject: string
  #finish: (report: DrainReport) => void = () => undefined
  #prepared: Prepared | undefined
  #run: DrainRun | undefined
  #ended: DrainReport | undefined
  readonly #ready: Promise<void>

  constructor(
    provider: DrainableProvider,
    resolved: ResolvedPolicy,
    hub: EventHub,
    subject: string,
    prepare: (session: Session) => Promise<Prepared>,
  ) {
    this.#provider = provider
    this.#resolved = resolved
    this.#hub = hub
    this.#subject = subject
    this.#prepare = prepare
    this.#lane = laneOf(provider, resolved.clock)
    this.#startedAt = resolved.clock.now()
    this.done = new Promise((resolve) => {
      this.#finish = resolve
    })
    this.#ready = this.#begin()
  }

  get lane(): Lane {
    return this.#lane
  }

  get startedAt(): number {
    return this.#startedAt
  }

  get signal(): AbortSignal {
    return this.#stop.signal
  }

  async #begin(): Promise<void> {
    const { signal } = this.#resolved
    const onAbort = (): void => void this.#abort()
    if (signal?.aborted === true) {
      this.#conclude({ outcome: 'aborted', members: [], elapsed: 0 })
      return
    }
    signal?.addEventListener('abort', onAbort, { once: true })
    void this.done.then(() => signal?.removeEventListener('abort', onAbort))
    try {
      this.#prepared = await abortable(this.#prepare(this), this.#stop.signal)
    } catch (error) {
      this.#failed(error)
      return
    }
    const { policy, states, ledger, first } = this.#prepared
    const { data } = this.#resolved
    this.#run = new DrainRun(
      {
        provider: this.#provider,
        lane: this.#lane,
        policy,
        keepReady: data.keepReady,
        onMinimum: data.onMinimum,
        ledger: policy.mode === 'watch' ? undefined : ledger,
        wallOffset: wallOffsetOf(this.#lane),
        emit: (event) => this.#hub.emit(event),
        onEnd: (report) => void this.#over(report),
      },
      states,
    )
    this.#run.start(first)
  }

  /** Every member has its outcome. A ticket with nothing left to undo is not kept. */
  async #over(report: DrainReport): Promise<void> {
    this.#ended = report
    const { tickets } = this.#resolved
    const ledger = this.#prepared?.ledger
    const gone = report.members.every((member) => member.phase === 'removed')
    const untouched = report.outcome === 'refused' && ledger?.changed === false
    if (tickets !== undefined && ledger !== undefined && (gone || untouched)) {
      // Where it can't be dropped it stays, and is found as an orphan.
      await settledWithin(dropTicket(tickets, ledger.id), this.#lane.clock, STORE_LIMIT)
    }
    this.#finish(report)
  }

  /** It could not start: nothing was changed. */
  #failed(thrown: unknown): void {
    const elapsed = Math.round(this.#lane.clock.now() - this.#startedAt)
    if (this.#stop.signal.aborted) {
      this.#conclude({ outcome: 'aborted', members: [], elapsed })
      return
    }
    const error = toDrainableError(thrown, this.#provider.name, this.#subject)
    const unreachable = isDrainableError(error, 'UNREACHABLE', 'CALL_TIMEOUT', 'CONNECTION_LOST')
    this.#conclude({
      outcome: unreachable ? 'unreachable' : 'refused',
      members: [],
      elapsed,
      error,
    })
  }

  #conclude(report: DrainReport): void {
    if (this.#ended !== undefined) return
    this.#ended = report
    const event: DrainEvent = {
      type: 'end',
      at: new Date().toISOString(),
      outcome: report.outcome,
      report,
    }
    this.#hub.emit(event)
    emitOn(this.#provider, event)
    this.#finish(report)
  }

  async #abort(): Promise<void> {
    if (this.#ended !== undefined) return
    if (this.#run !== undefined && this.#resolved.data.onAbort === 'restore') {
      await this.restore().catch((error: unknown) => this.#fault(error))
    }
    this.#stop.abort(this.#resolved.signal?.reason)
    this.#run?.end('aborted')
    this.#run?.release()
  }

  /** The undo that was asked for on abort failed: the members stay as they are, and that is said. */
  #fault(thrown: unknown): void {
    const error = toDrainableError(thrown, this.#provider.name, 'restore')
    const at = new Date().toISOString()
    for (const { ref } of this.#run?.states.values() ?? []) {
      this.#hub.emit({ type: 'fault', at, ref, error })
    }
  }

  report(): DrainReport {
    if (this.#run !== undefined) return this.#run.report()
    const elapsed = Math.round(this.#lane.clock.now() - this.#startedAt)
    return this.#ended ?? { outcome: 'aborted', members: [], elapsed }
  }

  why(): readonly Why[] {
    return this.#run?.why() ?? []
  }

  async ticket(): Promise<Ticket> {
    await this.#ready
    const ledger =
      this.#prepared?.ledger ??
      newLedger(this.#resolved, this.#provider, this.#lane, this.#startedAt)
    return ledger.ticket(this.#run?.states ?? new Map())
  }

  async restore(): Promise<DrainReport> {
    await this.#ready
    if (this.#run === undefined) return this.report()
    await this.#run.settle(SETTLE_LIMIT) // a hold under way is ours to undo once its answer is there
    const ticket = await this.ticket()
    this.#run.halt()
    const before = this.#run.report()
    const report = await restoreMembers(this.#lane, ticket, before, this.#stop.signal)
    const store = this.#resolved.tickets
    const drop = store !== undefined && nothingLeft(report)
    const written = drop ? this.#prepared?.ledger.close() : undefined
    this.#run.end('aborted')
    this.#run.release()
    if (drop) {
      await settledWithin(written ?? Promise.resolve(), this.#lane.clock, STORE_LIMIT)
      await dropTicket(store, ticket.id)
    }
    return report
  }

  async release(): Promise<void> {
    const released = new DrainableError('CONFLICT', 'the drain was released')
    if (this.#run === undefined) this.#stop.abort(released) // nothing was sent yet, and nothing will be
    await this.#ready
    if (this.#ended === undefined) this.#run?.end('aborted')
    this.#run?.release()
    this.#stop.abort(released)
  }
}

/** A ledger for a drain that begins now. */
export function newLedger(
  resolved: ResolvedPolicy,
  provider: DrainableProvider,
  lane: Lane,
  startedAt: number,
): Ledger {
  const offset = wallOffsetOf(lane)()
  const { timeout } = resolved.data
  const iso = (at: number): string => new Date(at + offset).toISOString()
  return new Ledger(
    {
      id: resolved.id ?? randomUUID(),
      instance: provider.instance,
      startedAt: iso(startedAt),
      deadline: timeout === null ? null : iso(startedAt + timeout),
      policy: resolved.data,
    },
    { store: resolved.tickets, onTicket: resolved.onTicket },
    wallOffsetOf(lane),
  )
}
