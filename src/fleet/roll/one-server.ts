import { abortable } from '../../provider/abort.js'
import { canonicalAddress } from '../../provider/address.js'
import { isoOf } from '../../provider/clock.js'
import type { MemberRef } from '../../provider/contract.js'
import { formatDuration } from '../../provider/duration.js'
import {
  DrainableError,
  isDrainableError,
  toDrainableError,
  wordsOf,
} from '../../provider/error.js'
import { formatRef } from '../../provider/member-ref.js'
import { quote } from '../../provider/quote.js'
import type {
  DrainReport,
  MemberReport,
  Outcome,
  ServerReport,
  Why,
} from '../../provider/report.js'
import { toError } from '../../core/member/said/report.js'
import { notKept } from '../../core/tickets/calls.js'
import type { ServerEvent } from './events.js'
import { holdsAnything, isLeftClosed, stillOpen } from './left.js'
import type { ServerState } from './ledger.js'
import type { RollOptions } from './options.js'
import type { RollContext } from './roll-spec.js'
import { ServerCall } from './server-call.js'

/**
 * How one server ended. `minimum`: its pool has too few left while others of this roll are
 * out, so it is tried again when one of them is back. `aborted`: the roll was.
 */
export type ServerEnd = 'done' | 'failed' | 'postponed' | 'minimum' | 'aborted'

/** Takes one server out, lets the caller act on it, and brings it back, unless it is to be removed. */
export class OneServer {
  readonly server: ServerState
  readonly #context: RollContext
  readonly #call: ServerCall
  #report: DrainReport | undefined
  #times: ServerReport['times'] = {}
  /** Since when `act` runs. */
  #actingSince: number | undefined

  constructor(server: ServerState, context: RollContext) {
    this.server = server
    this.#context = context
    this.#call = new ServerCall(server, context)
  }

  /** How its drain went in this process. */
  get report(): DrainReport | undefined {
    return this.#report
  }

  /** How long each part of it took in this process. */
  get times(): ServerReport['times'] {
    return this.#times
  }

  /** Its members that are down by this roll, or may be. */
  down(): readonly MemberRef[] {
    return this.#call.down()
  }

  /** What it waits for. */
  why(): readonly Why[] {
    const { state } = this.server
    const isUnderWay = state === 'draining' || state === 'acting' || state === 'acted'
    return isUnderWay ? [...this.#call.why(), ...this.#whyActing()] : []
  }

  /** Lets go of a drain that is held: the server stays as it is. */
  async release(): Promise<void> {
    await this.#call.release()
  }

  /** Never rejects. */
  async run(): Promise<ServerEnd> {
    const { server } = this
    const { signal, provider, subject } = this.#context
    server.error = null
    try {
      if (server.state !== 'acted') {
        const early = await this.#drainAndAct()
        if (early !== undefined) return early
      }
      if (this.#context.policy.data.until === 'removed') await this.#leaveOut()
      else await this.#open()
      return 'done'
    } catch (thrown) {
      if (signal.aborted) return 'aborted'
      return this.fail(toDrainableError(thrown, provider.name, subject))
    }
  }

  /** It has failed, or can't begin. Never rejects. */
  async fail(error: DrainableError): Promise<ServerEnd> {
    const { server } = this
    // What was acted on stays so: another process opens it, and does not act again.
    if (server.state !== 'acted') server.state = 'failed'
    server.error = error
    await this.#save().catch(() => undefined)
    this.#context.emit({ ...this.event('failed'), error })
    return 'failed'
  }

  #whyActing(): readonly Why[] {
    if (this.#actingSince === undefined) return []
    const since = formatDuration(this.#context.policy.clock.now() - this.#actingSince)
    const text = `act for ${this.#name()} has run for ${since}, attempt ${this.server.attempt}`
    return [{ code: 'acting', ref: this.#ref, text }]
  }

  event<T extends string>(type: T): ServerEvent<T> {
    const { refs, address } = this.server
    const at = isoOf(this.#context.policy.clock)
    return { type, at, ref: this.#ref, refs, ...(address === null ? {} : { address }) }
  }

  /** @returns how it ended, where it ended before it could be opened again */
  async #drainAndAct(): Promise<ServerEnd | undefined> {
    const { server } = this
    const { signal, emit, act, policy } = this.#context
    const { handle, run } = await this.#call.begin()
    try {
      const report = await abortable(handle.done, signal)
      this.#note(report)
      const error = toError(report) ?? stillOpen(report)
      if (error !== undefined) return await this.#notDrained(report, error)
      const refused = this.#movedTo(report) ?? (await this.#announceAct())
      if (refused !== undefined) {
        await this.#restored()
        return await this.fail(refused)
      }
      // The process may have stood still meanwhile: another one may roll by now.
      const refusal = policy.term?.permit()
      if (refusal !== undefined) {
        await Promise.resolve() // asking it ends the term, and with that this roll
        throw refusal
      }
      emit({ ...this.event('act'), attempt: server.attempt })
      await run.act((lost) => this.#act(act, report, lost))
      server.state = 'acted'
      await this.#save()
      return undefined
    } catch (thrown) {
      if (signal.aborted) {
        await this.#giveUp()
        const ended = await handle.done
        if (ended !== this.#report) this.#note(ended)
      }
      throw thrown
    }
  }

  #note(report: DrainReport): void {
    this.#report = report
    this.#times = { drain: report.elapsed }
  }

  async #act(act: RollOptions['act'], drained: DrainReport, lost: AbortSignal): Promise<void> {
    const { server } = this
    const { signal } = this.#context
    const ref = this.#ref
    const { clock } = this.#context.policy
    const since = clock.now()
    this.#actingSince = since
    try {
      await act({
        refs: server.refs,
        ref,
        ...(server.address === null ? {} : { address: server.address }),
        drained,
        attempt: server.attempt,
        signal: AbortSignal.any([lost, signal]),
      })
    } catch (thrown) {
      // The drain's own reason says more than that the caller's function gave up for it.
      if (lost.aborted) throw lost.reason
      throw new DrainableError('ACTION_FAILED', `${this.#name()}: act failed: ${wordsOf(thrown)}`, {
        ref,
        cause: thrown,
      })
    } finally {
      this.#actingSince = undefined
      this.#times = { ...this.#times, act: Math.round(clock.now() - since) }
    }
  }

  /** Another server has got the name since: the caller would act on the wrong machine. */
  #movedTo(report: DrainReport): DrainableError | undefined {
    const { address } = this.server
    if (address === null) return undefined
    for (const { ref, lastReading } of report.members) {
      const now = lastReading?.present === true ? lastReading.address : undefined
      if (now === undefined || canonicalAddress(now) === canonicalAddress(address)) continue
      return new DrainableError(
        'CONFLICT',
        `${formatRef(ref)} has another address now: ${quote(now)}, and not ${quote(address)}; begin another roll`,
        { ref },
      )
    }
    return undefined
  }

  async #notDrained(report: DrainReport, error: DrainableError): Promise<ServerEnd> {
    const { server } = this
    const { ledger, hasOthers } = this.#context
    const atMinimum = isDrainableError(error, 'POOL_AT_MINIMUM')
    const isBusy = report.outcome === 'timeout'
    // Where the policy says so, a busy server is left drained; any other was not acted on, so it goes back.
    if (isBusy && !ledger.plan.postpone) return this.fail(error)
    const isBack = await this.#restored()
    if (isBusy) {
      if (!isBack && server.drain !== null) return this.fail(error)
      server.state = 'postponed'
      server.error = error
      await this.#save()
      return 'postponed'
    }
    if (!isBack || !atMinimum || !hasOthers()) return this.fail(error)
    server.state = 'waiting'
    await this.#save()
    return 'minimum'
  }

  /** Takes back a drain after which `act` was not called. */
  async #restored(): Promise<boolean> {
    const { members } = await this.#call.restore()
    const isBack = members.every(({ outcome }) => NOT_OURS.has(outcome))
    if (!isBack) return false
    this.#call.forget()
    const closed = members.filter(isLeftClosed)
    for (const one of closed) this.#fault(one.error ?? notOpened(one), one.ref)
    this.server.leftAsFound = closed.map(({ ref }) => ref)
    return true
  }

  /** The roll was aborted: what was acted on stays as it is; else as the policy says. */
  async #giveUp(): Promise<void> {
    const { server } = this
    const { data, term } = this.#context.policy
    const isActedOn = server.state !== 'draining'
    const may = !isActedOn && data.onAbort === 'restore' && term?.permit() === undefined
    const isBack = may && (await this.#restored())
    await this.release()
    if (!isActedOn && (isBack || !holdsAnything(server))) server.state = 'waiting'
  }

  /**
   * Opens what is ours and sees it healthy. What an operator has closed meanwhile, or another call holds, is left so and
   * said: the server is done.
   */
  async #open(): Promise<void> {
    const { server } = this
    const { emit, signal, policy } = this.#context
    signal.throwIfAborted()
    emit(this.event('ready'))
    const since = policy.clock.now()
    const { members, error } = await this.#call.open()
    const unopened = members.find(({ outcome }) => !LEFT.has(outcome))
    if (error !== undefined) throw error
    if (unopened !== undefined) throw unopened.error ?? notOpened(unopened)
    const theirs = members.filter(isTheirs)
    for (const one of theirs) this.#fault(one.error ?? notOpened(one), one.ref)
    const asFound = [...theirs, ...members.filter(({ wasAdmin }) => wasAdmin !== 'ready')]
    server.leftAsFound = [...new Set(asFound.map(({ ref }) => ref))]
    this.#times = { ...this.#times, healthy: Math.round(policy.clock.now() - since) }
    this.#call.forget()
    server.state = 'done'
    await this.#save()
    emit(this.event('healthy'))
  }

  /** It is out of its pools for good: there is nothing to open. */
  async #leaveOut(): Promise<void> {
    this.#context.signal.throwIfAborted()
    const members = this.#report?.members ?? this.server.drain?.members ?? []
    const left = members.find(({ phase }) => phase !== 'removed')
    if (left !== undefined) {
      const { ref } = left
      const words = `${formatRef(ref)} was acted on, and is still in its pool: remove it, or open it with ready()`
      throw new DrainableError('CONFLICT', words, { ref })
    }
    this.#call.forget()
    this.server.state = 'done'
    await this.#save()
  }

  /** Before `act` is called its ticket must say so; returns why it does not. */
  async #announceAct(): Promise<DrainableError | undefined> {
    const { server } = this
    const { ledger, signal } = this.#context
    server.attempt += 1
    server.state = 'acting'
    try {
      await abortable(ledger.save(), signal)
      return undefined
    } catch (thrown) {
      server.attempt -= 1
      server.state = 'draining'
      signal.throwIfAborted()
      if (isDrainableError(thrown, 'NOT_LEADER')) throw thrown
      return notKept('saved', thrown)
    }
  }

  /**
   * What can't be written now is said, and in the next writing.
   *
   * @throws `NOT_LEADER` where a later holder of the lease goes on
   */
  async #save(): Promise<void> {
    const { ledger, signal } = this.#context
    try {
      await abortable(ledger.save(), signal)
    } catch (thrown) {
      if (isDrainableError(thrown, 'NOT_LEADER')) throw thrown
      if (!signal.aborted) this.#fault(notKept('saved', thrown))
    }
  }

  #fault(error: DrainableError, ref = this.#ref): void {
    const { emit, policy } = this.#context
    emit({ type: 'fault', at: isoOf(policy.clock), ref, error })
  }

  /** Its first member stands for it where one has to be named. */
  get #ref(): MemberRef {
    const [ref] = this.server.refs
    if (ref === undefined) throw new Error('a server without members')
    return ref
  }

  #name(): string {
    const { address } = this.server
    const name = formatRef(this.#ref)
    return address === null ? name : `${name} (${quote(address)})`
  }
}

/** How an undo ends where nothing of ours is left on the member. */
const NOT_OURS: ReadonlySet<Outcome> = new Set<Outcome>(['restored', 'gone', 'overruled'])
/** How an opening ends where the member is open, or is another client's to open. */
const LEFT: ReadonlySet<Outcome> = new Set<Outcome>(['restored', 'overruled'])

/** Whether it was not opened because it is not ours to open: another client closed it, or another call holds it. */
function isTheirs({ outcome, why }: MemberReport): boolean {
  return outcome === 'overruled' || why.some(({ code }) => code === 'held')
}

function notOpened({ ref, why, outcome }: MemberReport): DrainableError {
  const words = why[0]?.text ?? `its opening ended as ${outcome}`
  return new DrainableError('CONFLICT', `${formatRef(ref)} was not opened: ${words}`, { ref })
}
