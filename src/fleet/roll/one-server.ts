import { abortable } from '../../provider/abort.js'
import { canonicalAddress } from '../../provider/address.js'
import { wallOf } from '../../provider/clock.js'
import type { MemberRef } from '../../provider/contract.js'
import { formatDuration } from '../../provider/duration.js'
import { DrainableError, isDrainableError } from '../../provider/error.js'
import { formatRef } from '../../provider/member-ref.js'
import { quote } from '../../provider/quote.js'
import type { DrainReport, Outcome, Why } from '../../provider/report.js'
import { toDrainableError, wordsOf } from '../../provider/thrown.js'
import { partsOf } from '../../core/combined/parts.js'
import type { DrainHandle } from '../../core/calls/handle.js'
import { toError } from '../../core/member/said/report.js'
import { notKept } from '../../core/tickets/calls.js'
import type { Ticket } from '../../core/tickets/ticket.js'
import { openAny } from '../../core/calls/drain.js'
import type { ResolvedPolicy } from '../../core/calls/policy.js'
import { openResumed } from '../../core/calls/resume.js'
import { parseTarget } from '../../core/calls/target.js'
import type { ServerEvent } from './events.js'
import type { KeptOut } from './kept-out.js'
import { holdsAnything } from './left.js'
import type { ServerState } from './ledger.js'
import { Opening } from './opening.js'
import type { RollOptions } from './options.js'
import type { RollContext } from './roll-context.js'

/**
 * How one server ended. `minimum`: its pool has too few left while others of this roll are
 * out, so it is tried again when one of them is back. `aborted`: the roll was.
 */
export type ServerEnd = 'done' | 'failed' | 'postponed' | 'minimum' | 'aborted'

/** Takes one server out, lets the caller act on it, and brings it back. */
export class OneServer {
  readonly server: ServerState
  readonly #context: RollContext
  #report: DrainReport | undefined
  #handle: DrainHandle | undefined
  /** Nothing of its drain is left to be written. */
  #isOver = false
  #givenUp: Promise<void> | undefined
  /** Since when `act` runs. */
  #actingSince: number | undefined
  readonly #opening: Opening
  #kept: KeptOut | undefined

  /** @param kept - what keeps it out that an earlier process left drained */
  constructor(server: ServerState, context: RollContext, kept?: KeptOut) {
    this.server = server
    this.#context = context
    this.#kept = kept
    this.#opening = new Opening(server, context)
  }

  /** How its drain went in this process. */
  get report(): DrainReport | undefined {
    return this.#report
  }

  /** What it waits for. */
  why(): readonly Why[] {
    const { server } = this
    if (server.state === 'draining') return this.#handle?.why() ?? []
    if (server.state === 'acting') return [...(this.#handle?.why() ?? []), ...this.#whyActing()]
    return server.state === 'acted' ? this.#opening.why() : []
  }

  /** Lets go of a drain that is held: the server stays as it is. */
  async release(): Promise<void> {
    await this.#handle?.release()
  }

  /** Never rejects. */
  async run(): Promise<ServerEnd> {
    const { server } = this
    const { signal, provider, subject } = this.#context
    try {
      if (server.state !== 'acted') {
        const early = await this.#drainAndAct()
        if (early !== undefined) return early
      }
      await this.#open()
      return 'done'
    } catch (thrown) {
      if (signal.aborted) return 'aborted'
      return this.#failed(toDrainableError(thrown, provider.name, subject))
    }
  }

  /** It can't begin. Never rejects. */
  refuse(error: DrainableError): Promise<ServerEnd> {
    return this.#failed(error)
  }

  #whyActing(): readonly Why[] {
    if (this.#actingSince === undefined) return []
    const since = formatDuration(this.#context.policy.clock.now() - this.#actingSince)
    const text = `act for ${this.#name()} has run for ${since}, attempt ${this.server.attempt}`
    return [{ code: 'acting', ref: this.#ref, text }]
  }

  event<T extends string>(type: T): ServerEvent<T> {
    const { refs, address } = this.server
    const at = this.#context.stamp()
    return { type, at, ref: this.#ref, refs, ...(address === null ? {} : { address }) }
  }

  /** @returns how it ended, where it ended before it could be opened again */
  async #drainAndAct(): Promise<ServerEnd | undefined> {
    const { server } = this
    const { signal, emit, act, policy } = this.#context
    server.error = null
    await this.#kept?.end()
    signal.throwIfAborted()
    const { handle, run } = this.#begin()
    this.#handle = handle
    const putBack = policy.data.onAbort === 'restore'
    const stop = (): void => void this.#giveUp(putBack)
    signal.addEventListener('abort', stop, { once: true })
    try {
      const report = await handle.done
      this.#report = report
      signal.throwIfAborted()
      const error = toError(report)
      if (error !== undefined) return await this.#notDrained(report, error)
      const other = this.#movedTo(report)
      if (other !== undefined) return await this.#putBack(other)
      const unkept = await this.#announceAct()
      if (unkept !== undefined) return await this.#putBack(unkept)
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
      await handle.release()
      return undefined
    } catch (thrown) {
      if (signal.aborted) await this.#giveUp(putBack)
      throw thrown
    } finally {
      signal.removeEventListener('abort', stop)
    }
  }

  #begin(): ReturnType<typeof openAny> {
    const { server } = this
    const { provider, subject, policy, emit, ledger } = this.#context
    const resolved: ResolvedPolicy = {
      ...policy,
      signal: undefined, // the roll's own: it decides what an abort means
      onEvent: emit,
      tickets: undefined,
      onTicket: undefined,
      id: ledger.idOf(server),
      whole: ledger.part((ticket, limit) => this.#keep(ticket, limit)),
    }
    const { drain } = server
    const knows = drain !== null && (drain.members.length > 0 || partsOf(provider) !== undefined)
    if (knows) return openResumed(provider, this.#anew(drain), resolved, subject)
    server.state = 'draining'
    const refs = [...server.refs]
    return openAny(provider, refs, parseTarget(refs, subject), resolved, subject)
  }

  /** What was left goes on with its whole time to drain from now, however long it has waited for its turn. */
  #anew(drain: Ticket): Ticket {
    const { clock, data } = this.#context.policy
    const deadline =
      data.timeout === null ? null : new Date(wallOf(clock) + data.timeout).toISOString()
    return { ...drain, deadline }
  }

  /** The first change of a drain waits until the roll's ticket has it. */
  async #keep(ticket: Ticket, limit: number): Promise<void> {
    if (this.#isOver) return
    this.server.drain = ticket
    await this.#context.ledger.save(limit)
  }

  async #act(act: RollOptions['act'], drained: DrainReport, lost: AbortSignal): Promise<void> {
    const { server } = this
    const { signal } = this.#context
    const ref = this.#ref
    const stop = new AbortController()
    const listen = (source: AbortSignal): (() => void) => {
      const fire = (): void => stop.abort(source.reason)
      if (source.aborted) fire()
      else source.addEventListener('abort', fire, { once: true })
      return () => source.removeEventListener('abort', fire)
    }
    const leave = [listen(lost), listen(signal)]
    this.#actingSince = this.#context.policy.clock.now()
    try {
      await act({
        refs: server.refs,
        ref,
        ...(server.address === null ? {} : { address: server.address }),
        drained,
        attempt: server.attempt,
        signal: stop.signal,
      })
    } catch (thrown) {
      // The drain's own reason says more than that the caller's function gave up for it.
      if (lost.aborted) throw lost.reason
      throw new DrainableError('ACTION_FAILED', `${this.#name()}: act failed: ${wordsOf(thrown)}`, {
        ref,
        cause: thrown,
      })
    } finally {
      for (const off of leave) off()
      this.#actingSince = undefined
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
    const { mayPostpone, ledger, hasOthers } = this.#context
    const atMinimum = isDrainableError(error, 'POOL_AT_MINIMUM')
    if (report.outcome === 'timeout' && ledger.plan.postpone) {
      if (!(await this.#restored()) || !mayPostpone) {
        server.error = error
        if (server.drain !== null) return this.#failed(error)
        server.state = 'postponed'
        await this.#save()
        return 'failed'
      }
      server.state = 'postponed'
      server.error = error
      await this.#save()
      return 'postponed'
    }
    // Where the policy says so, a busy server is left drained; any other was not acted on, so it goes back.
    if (report.outcome === 'timeout') return this.#failed(error)
    if (!(await this.#restored()) || !atMinimum || !hasOthers()) return this.#failed(error)
    server.state = 'waiting'
    await this.#save()
    return 'minimum'
  }

  async #putBack(error: DrainableError): Promise<ServerEnd> {
    await this.#restored()
    return this.#failed(error)
  }

  /** Takes back a drain after which `act` was not called. */
  async #restored(): Promise<boolean> {
    const handle = this.#handle
    if (handle === undefined) return true
    const { members } = await handle.restore()
    const isBack = members.every(({ outcome }) => NOT_OURS.has(outcome))
    if (isBack) this.#forget()
    return isBack
  }

  #forget(): void {
    this.#isOver = true
    this.server.drain = null
  }

  /** The roll was aborted: what was acted on stays as it is; else as the policy says. */
  #giveUp(putBack: boolean): Promise<void> {
    this.#givenUp ??= (async () => {
      const { server } = this
      if (server.state !== 'draining') return
      const may = putBack && this.#context.policy.term?.permit() === undefined
      const isBack = may && (await this.#restored())
      await this.release()
      if (isBack || server.drain === null || !holdsAnything(server.drain)) server.state = 'waiting'
    })()
    return this.#givenUp
  }

  async #failed(error: DrainableError): Promise<ServerEnd> {
    const { server } = this
    server.state = 'failed'
    server.error = error
    await this.#save().catch(() => undefined)
    this.#context.emit({ ...this.event('failed'), error })
    return 'failed'
  }

  /** Opens it again and sees it healthy. */
  async #open(): Promise<void> {
    const { server } = this
    const { emit, signal } = this.#context
    signal.throwIfAborted()
    emit(this.event('ready'))
    await this.#opening.open()
    this.#forget()
    server.state = 'done'
    await this.#save()
    emit(this.event('healthy'))
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
    const { ledger, signal, emit, stamp } = this.#context
    try {
      await abortable(ledger.save(), signal)
    } catch (thrown) {
      if (isDrainableError(thrown, 'NOT_LEADER')) throw thrown
      if (!signal.aborted)
        emit({ type: 'fault', at: stamp(), ref: this.#ref, error: notKept('saved', thrown) })
    }
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
