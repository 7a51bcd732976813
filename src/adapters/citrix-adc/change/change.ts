import { carefulApply } from '../../../kit/careful-apply.js'
import type { CarefulAdapter, ChangeOf, ChangeOutcome } from '../../../kit/change.js'
import { refusal } from '../../../kit/errors.js'
import type { CallContext, Change, ChangeResult } from '../../../provider/contract.js'
import { pause } from '../../../provider/clock.js'
import { type DrainableError, type ErrorCode, isDrainableError } from '../../../provider/error.js'
import { formatRef } from '../../../provider/member-ref.js'
import { type Command, disable, enable } from '../codec/nitro.js'
import type { SvrPhase } from '../codec/rows.js'
import { isInCharge } from '../session/standing.js'
import type { Memory } from '../read/memory.js'
import { Look, type Standpoint } from './look.js'
import type { Settings } from '../options.js'
import type { InCharge, Pair } from '../session/pair.js'
import { Sender } from './sender.js'

const PROVIDER = 'citrix-adc'
/** How long a member without work may take to go OUT OF SERVICE by itself: the appliance looks once a second. */
const SELF_SEAL = 3_000
const SELF_SEAL_LOOK = 250
/** How long a disable without grace, which takes effect at once, may take to show. */
const SHOWS_WITHIN = 1_000

/** A change with everything it takes to carry it out. */
interface Task {
  readonly change: Change
  readonly found: Standpoint
  readonly look: Look
  readonly charge: InCharge
  readonly ctx: CallContext
}

/** The last look of a call. */
interface Seen {
  last?: Pick<Task, 'look' | 'charge'>
}

/** Carries changes out, one after the other: compare, ask for the role, write, look. */
export class Writer {
  readonly #options: Settings
  readonly #pair: Pair
  readonly #memory: Memory
  readonly #sender: Sender

  constructor(options: Settings, pair: Pair, memory: Memory) {
    this.#options = options
    this.#pair = pair
    this.#memory = memory
    this.#sender = new Sender(pair)
  }

  /** What went half well, for whoever asks why. */
  get hints(): readonly string[] {
    return this.#sender.hints
  }

  async apply(changes: readonly Change[], ctx: CallContext): Promise<readonly ChangeResult[]> {
    const seen: Seen = {}
    const results = await carefulApply(this.#adapter(seen), changes, ctx)
    const { charge } = seen.last ?? {}
    const applied = results.some(({ status }) => status === 'applied')
    if (charge !== undefined && applied && this.#options.save) {
      await this.#sender.save(charge, ctx)
    }
    return results
  }

  #adapter(seen: Seen): CarefulAdapter<Standpoint> {
    const task = (change: Change, found: Standpoint, ctx: CallContext): Task => {
      if (seen.last === undefined) throw new TypeError('a change without a look')
      this.#assertOurs(change, found)
      return { change, found, ctx, ...seen.last }
    }
    return {
      provider: PROVIDER,
      look: async (changes, ctx) => {
        const charge = await this.#pair.find(ctx)
        const look = new Look(charge, this.#memory, ctx)
        await look.at(changes)
        seen.last = { look, charge }
        return ({ ref }) => look.of(ref)
      },
      absent: ({ ref }) =>
        `${formatRef(ref)}: neither a service group with that member ('server:port') nor a virtual server with that service`,
      hold: (change, found, ctx) => {
        const one = task(change, found, ctx)
        return change.to === 'drain' ? this.#drain(one) : this.#maint(one)
      },
      restore: (change, found, ctx) => this.#restore(change, task(change, found, ctx)),
      terminate: (change, found, ctx) => this.#terminate(task(change, found, ctx)),
      remove:
        'an unbind cuts what is left on it: drain it, then unbind it with the tool that owns the configuration',
      add: 'bind it with the tool that owns the configuration, then make it ready',
    }
  }

  #assertOurs({ ref }: Change, { traits: { autoscale } }: Standpoint): void {
    const desired = autoscale === 'API' || autoscale === 'DNS'
    if (!desired || this.#options.desiredState !== 'refuse') return
    const words = `service group '${ref.pool}' has autoscale ${autoscale}: its members are kept by the desired state or by DNS, drain there, or set desiredState: 'try'`
    throw refuse('UNSUPPORTED', words, ref)
  }

  async #drain(task: Task): Promise<ChangeOutcome> {
    const { subject, phase } = task.found.entry
    const command = disable(subject, true)
    const deed = (): void => this.#memory.did(subject, 'drain', phase === 'in')
    return this.#write(task, command, isOut, deed)
  }

  /**
   * Closes the door to everybody. A member of ours in TROFS or out of service closes it by itself, so
   * a seal is waited for and never sent; a member that clients with a persistence entry keep busy is
   * disabled without grace.
   */
  async #maint(task: Task): Promise<ChangeOutcome> {
    const { change, found, look, ctx } = task
    const { ref } = change
    const { entry, own, load = 0 } = found
    const freshness = this.#options.freshness
    const busyLately =
      load > 0 || this.#memory.restedFor(entry.subject, ctx.clock.now()) < freshness
    if (own === 'drain' && (entry.phase === 'out' || load === 0)) {
      const patience = busyLately && entry.phase === 'trofs' ? 0 : SELF_SEAL
      const closed = await this.#waitOut(ref, look, patience, ctx)
      if (closed !== undefined) {
        this.#memory.rename(entry.subject, 'maint', closed.entry)
        return { status: 'unchanged' }
      }
      if (!busyLately) {
        const words = `${formatRef(ref)} is in TROFS without work and was not disabled once more: what that does is not documented. It goes OUT OF SERVICE when the last client with a persistence entry is gone, or set trofsPersistence to DISABLED on the virtual server`
        throw refuse('UNSUPPORTED', words, ref)
      }
    }
    const deed = (): void => this.#memory.did(entry.subject, 'maint', false)
    return this.#write(task, disable(entry.subject, false), isClosed, deed)
  }

  async #restore({ to }: ChangeOf<'restore'>, task: Task): Promise<ChangeOutcome> {
    const { entry } = task.found
    if (to === 'maint') return this.#maint(task)
    if (to === 'drain' && entry.phase === 'out') {
      // There is no way from OUT OF SERVICE back to TROFS but through service: it stays closed.
      this.#memory.rename(entry.subject, 'drain', entry)
      return { status: 'applied' }
    }
    if (to === 'drain') return this.#drain(task)
    const deed = (): void => this.#memory.forget(entry.subject)
    return this.#write(task, enable(entry.subject), isIn, deed)
  }

  /** A disable without grace cuts what is established, where downStateFlush is on. */
  async #terminate(task: Task): Promise<ChangeOutcome> {
    const { change, found } = task
    const { ref } = change
    const { entry, traits, own, load } = found
    const name = formatRef(ref)
    if (own === 'unknown') {
      const why = `${name} is '${entry.svrstate}', which says nothing about its state, nothing was sent`
      throw refuse('CONFLICT', why, ref, true) // the next look may say more
    }
    if (own === 'ready') {
      const why = `${name} is in service, what would be cut comes back at once: hold it first`
      throw refuse('CONFLICT', why, ref, false)
    }
    if (entry.phase === 'out') {
      if (load === 0) return { status: 'unchanged', terminated: 0 }
      if (load === undefined && traits.flush !== false) return { status: 'unchanged' }
    }
    if (traits.flush === false) {
      const why = `${name} cannot be cut: downStateFlush is DISABLED there, so that connections outlive a disable; enable it, or wait`
      throw refuse('UNSUPPORTED', why, ref)
    }
    const as = own === 'maint' ? 'maint' : 'drain'
    const deed = (): void => this.#memory.did(entry.subject, as, false)
    const result = await this.#write(task, disable(entry.subject, false), isClosed, deed)
    if (result.status !== 'applied' || load === undefined) return result
    return { ...result, terminated: load, atMost: true }
  }

  /** The member as soon as it is out of service; undefined where it does not get there in time. */
  async #waitOut(
    ref: Change['ref'],
    look: Look,
    patience: number,
    ctx: CallContext,
  ): Promise<Standpoint | undefined> {
    const until = ctx.clock.now() + patience
    for (;;) {
      const found = look.of(ref)
      if (found?.entry.phase === 'out') return found
      if (found === undefined || ctx.clock.now() >= until) return undefined
      await pause(ctx.clock, SELF_SEAL_LOOK, ctx.signal)
      await look.again(ref)
    }
  }

  /**
   * Sends one change and looks at what became of it. Nothing is ever sent twice without a look in
   * between: a second disable may restart the appliance's timers.
   */
  async #write(
    { change, found: { entry }, look, charge, ctx }: Task,
    command: Command,
    shows: (phase: SvrPhase) => boolean,
    deed: () => void,
  ): Promise<ChangeOutcome> {
    const { ref } = change
    const before = this.#memory.of(entry.subject)
    const undo = entry.phase === 'in' ? enable(entry.subject) : undefined
    const written = await this.#sender.send(change, command, undo, charge, ctx)
    if (written !== 'done' && (written.status === 'rejected' || written.astray === true)) {
      return { status: written.status, error: written.error }
    }
    deed()
    try {
      await look.again(ref)
    } catch (error) {
      if (ctx.signal.aborted || !isDrainableError(error)) throw error
      return written === 'done' ? { status: 'applied' } : written
    }
    if (written === 'done' && shows !== isClosed) return { status: 'applied' }
    if (written === 'done') {
      if ((await this.#waitOut(ref, look, SHOWS_WITHIN, ctx)) !== undefined) {
        return { status: 'applied' }
      }
      const left = look.of(ref)?.entry
      const why = `${formatRef(ref)}: the appliance said Done to a disable without grace and left it '${left?.svrstate ?? 'gone'}'`
      if (left?.phase !== entry.phase) {
        return { status: 'unknown', error: refuse('CONFLICT', why, ref) }
      }
      // In TROFS some build may take a second disable for nothing: then nothing was cut or closed.
      this.#memory.put(entry.subject, before)
      return { status: 'rejected', error: refuse('REJECTED', why, ref, false) }
    }
    const found = look.of(ref)
    const shown = found !== undefined && shows(found.entry.phase)
    return shown && (await this.#stillInCharge(charge, ctx)) ? { status: 'applied' } : written
  }

  /** What a node shows that has become the secondary meanwhile may be its own alone. */
  async #stillInCharge({ standings }: InCharge, ctx: CallContext): Promise<boolean> {
    try {
      if (isInCharge(await standings.role(ctx))) return true
      this.#pair.forget()
    } catch (error) {
      if (ctx.signal.aborted || !isDrainableError(error)) throw error
    }
    return false
  }
}

const isIn = (phase: SvrPhase): boolean => phase === 'in'
const isOut = (phase: SvrPhase): boolean => phase === 'trofs' || phase === 'out'
const isClosed = (phase: SvrPhase): boolean => phase === 'out'

function refuse(
  code: ErrorCode,
  words: string,
  ref: Change['ref'],
  retryable?: boolean,
): DrainableError {
  return refusal(code, words, { provider: PROVIDER, ref }, retryable)
}
