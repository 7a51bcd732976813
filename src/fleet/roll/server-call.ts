import { isoOf } from '../../provider/clock.js'
import type { MemberRef } from '../../provider/contract.js'
import { refKey } from '../../provider/member-ref.js'
import type { DrainReport, MemberReport, Why } from '../../provider/report.js'
import { combinedOf } from '../../core/combined.js'
import { openAny } from '../../core/calls/drain.js'
import type { ResolvedPolicy } from '../../core/calls/policy.js'
import { readyUnder } from '../../core/calls/ready.js'
import { openResumed } from '../../core/calls/resume.js'
import type { Opening } from '../../core/calls/run/run-spec.js'
import { parseTarget } from '../../core/calls/target.js'
import type { DrainEvent } from '../../core/events.js'
import type { Ticket } from '../../core/tickets/ticket.js'
import { downIn } from './left.js'
import type { ServerState } from './ledger.js'
import type { RollContext } from './roll-spec.js'

/** The shortest time that `ready()` takes without doubt that it is meant, in milliseconds. */
const SHORTEST_OPENING = 1_000

type Call = ReturnType<typeof openAny>

/**
 * The call of one server: its members are taken down, held while `act` runs, and opened, under one ticket. That is a part of
 * the roll's, so another process goes on where this one was.
 */
export class ServerCall {
  readonly #server: ServerState
  readonly #context: RollContext
  #call: Call | undefined
  /** What its call says is not written any more: nothing of ours is left. */
  #isOver = false

  constructor(server: ServerState, context: RollContext) {
    this.#server = server
    this.#context = context
  }

  /** Takes its members down, or goes on with that. */
  async begin(): Promise<Call> {
    const { provider, subject, signal } = this.#context
    await this.release()
    signal.throwIfAborted()
    this.#isOver = false
    const { drain, refs } = this.#server
    const knows = drain !== null && (drain.members.length > 0 || combinedOf(provider) !== undefined)
    if (knows) {
      this.#call = this.#resume(drain, this.#policy())
    } else {
      this.#server.state = 'draining'
      const target = parseTarget(refs, subject)
      this.#call = openAny(provider, [...refs], target, this.#policy(), subject)
    }
    return this.#call
  }

  /**
   * Opens what is ours, and sees healthy what gets clients again. A member that went while `act` ran is opened under its
   * name: `act` was told, has ended well, and may have replaced the machine.
   */
  async open(): Promise<DrainReport> {
    const { ledger, check, signal, emit } = this.#context
    const { by, limit } = ledger.plan.health
    const { drain } = this.#server
    if (this.#call === undefined && drain !== null) {
      // Its drain was told in an earlier process.
      const onEvent = (event: DrainEvent): void => {
        if (event.type === 'fault' || event.type === 'overruled') emit(event)
      }
      this.#call = this.#resume(drain, { ...this.#policy(), onEvent })
    }
    if (this.#call === undefined) return NOTHING
    const { run } = this.#call
    const known = [...run.report().members, ...(drain?.members ?? [])]
    const gone = new Set(
      known.flatMap(({ ref, phase }) => (phase === 'removed' ? refKey(ref) : [])),
    )
    const isGone = ({ ref }: MemberReport): boolean => gone.has(refKey(ref))
    const own = by === 'caller' ? check : undefined
    const how: Opening = { limit, mustBeHealthy: by !== 'nobody', check: own, signal }
    const report = await run.restore(how)
    signal.throwIfAborted()
    const replaced = report.members.filter((one) => isGone(one) && one.wasAdmin === 'ready')
    await this.#openNew(
      replaced.map(({ ref }) => ref),
      how,
    )
    return { ...report, members: report.members.filter((one) => !isGone(one)) }
  }

  async #openNew(refs: readonly MemberRef[], how: Opening): Promise<void> {
    if (refs.length === 0) return
    const { provider, subject, policy, signal } = this.#context
    const { clock, term } = policy
    const timeout = Math.max(SHORTEST_OPENING, how.limit ?? Infinity)
    const waitHealthy = how.check ?? how.mustBeHealthy
    await readyUnder(provider, refs, { clock, signal, waitHealthy, timeout }, subject, term)
  }

  /** Undoes what was done, and nothing else. */
  async restore(): Promise<DrainReport> {
    return this.#call?.run.restore() ?? NOTHING
  }

  /** Lets go: the server stays as it is. */
  async release(): Promise<void> {
    await this.#call?.handle.release()
  }

  /** Nothing of ours is left on it. */
  forget(): void {
    this.#isOver = true
    this.#server.drain = null
  }

  why(): readonly Why[] {
    return this.#call?.run.why() ?? []
  }

  /** Its members that are down by this roll, or may be: as its ticket says, and where no look contradicts it. */
  down(): readonly MemberRef[] {
    const others = new Set(this.#call?.run.notDown().map(refKey))
    return downIn(this.#server).filter((ref) => !others.has(refKey(ref)))
  }

  /** With the whole time from now, whatever an earlier process has left of it. */
  #resume(drain: Ticket, policy: ResolvedPolicy): Call {
    const { provider, subject } = this.#context
    const { timeout } = policy.data
    const deadline = timeout === null ? null : isoOf(policy.clock, timeout)
    return openResumed(provider, { ...drain, deadline }, policy, subject)
  }

  #policy(): ResolvedPolicy {
    const { policy, emit, ledger } = this.#context
    return {
      ...policy,
      signal: undefined, // the roll's own: it decides what an abort means
      onEvent: emit,
      tickets: undefined,
      onTicket: undefined,
      id: ledger.idOf(this.#server),
      // The first change of a drain waits until the roll's ticket has it.
      whole: ledger.part(async (ticket, limit) => {
        if (this.#isOver) return
        this.#server.drain = ticket
        await ledger.save(limit)
      }),
    }
  }
}

const NOTHING: DrainReport = { outcome: 'restored', members: [], elapsed: 0 }
