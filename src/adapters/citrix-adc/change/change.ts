import type { CallContext, Change, ChangeResult } from '../../../provider/contract.js'
import { pause } from '../../../provider/clock.js'
import { isDrainableError } from '../../../provider/error.js'
import { formatRef } from '../../../provider/member-ref.js'
import { type Command, disable, enable } from '../codec/nitro.js'
import type { SvrPhase } from '../codec/rows.js'
import { isInCharge } from '../session/standing.js'
import type { Memory } from '../read/memory.js'
import { Look, type Standpoint } from './look.js'
import type { Settings } from '../options.js'
import type { InCharge, Pair } from '../session/pair.js'
import { notFound, refuse, refuseUnsupported, reject, withRef } from './refusals.js'
import { Sender } from './sender.js'
import { isNetworkError } from '../session/session.js'

/** How long a member without work may take to go OUT OF SERVICE by itself: the appliance looks once a second. */
const SELF_SEAL = 3_000
const SELF_SEAL_LOOK = 250
/** How long a disable without grace, which takes effect at once, may take to show. */
const SHOWS_WITHIN = 1_000

/** A change with everything it takes to carry it out. */
interface Errand {
  readonly change: Change
  readonly found: Standpoint
  readonly look: Look
  readonly charge: InCharge
  readonly ctx: CallContext
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
    const charge = await this.#pair.find(ctx)
    const look = new Look(charge, this.#memory, ctx)
    try {
      await look.at(changes)
    } catch (error) {
      if (ctx.signal.aborted || isNetworkError(error) || !isDrainableError(error)) throw error
      // Nothing was sent yet: that is a refusal, not an unknown outcome.
      return changes.map((change, i) => {
        const { ref } = change
        const result = { ref, status: 'rejected', error: withRef(error, change) } as const
        ctx.result?.(i, result)
        return result
      })
    }
    const results: ChangeResult[] = []
    for (const [i, change] of changes.entries()) {
      const result = await this.#one(change, look, charge, ctx)
      results.push(result)
      ctx.result?.(i, result)
    }
    if (results.some(({ status }) => status === 'applied') && this.#options.save) {
      await this.#sender.save(charge, ctx)
    }
    return results
  }

  async #one(
    change: Change,
    look: Look,
    charge: InCharge,
    ctx: CallContext,
  ): Promise<ChangeResult> {
    const { ref } = change
    const unsupported = refuseUnsupported(change)
    if (unsupported !== undefined) return { ref, ...unsupported }
    // A service can be in the pools of several virtual servers: what was written through one holds in all.
    if (look.wroteTo(ref)) await look.again(ref)
    const found = look.of(ref)
    if (found === undefined) return { ref, ...notFound(change) }
    const refusal = refuse(change, found, this.#options.desiredState)
    if (refusal !== undefined) return { ref, ...refusal }
    const errand = { change, found, look, charge, ctx }
    switch (change.kind) {
      case 'hold':
        return change.to === 'drain' ? this.#drain(errand) : this.#maint(errand)
      case 'restore':
        return this.#restore(change, errand)
      case 'terminate':
        return this.#terminate(errand)
      case 'add':
      case 'remove':
        return { ref, ...notFound(change) }
      default:
        return change satisfies never
    }
  }

  async #drain(errand: Errand): Promise<ChangeResult> {
    const { change, found } = errand
    if (found.own !== 'ready') return { ref: change.ref, status: 'unchanged' }
    const { subject, phase } = found.entry
    const command = disable(subject, true)
    const deed = (): void => this.#memory.did(subject, 'drain', phase === 'in')
    return this.#write(errand, command, isOut, deed)
  }

  /**
   * Closes the door to everybody. A member of ours in TROFS or out of service closes it by itself, so
   * a seal is waited for and never sent; a member that clients with a persistence entry keep busy is
   * disabled without grace.
   */
  async #maint(errand: Errand): Promise<ChangeResult> {
    const { change, found, look, ctx } = errand
    const { ref } = change
    const { entry, own, load = 0 } = found
    if (own === 'maint') return { ref, status: 'unchanged' }
    const freshness = this.#options.freshness
    const busyLately =
      load > 0 || this.#memory.restedFor(entry.subject, ctx.clock.now()) < freshness
    if (own === 'drain' && (entry.phase === 'out' || load === 0)) {
      const patience = busyLately && entry.phase === 'trofs' ? 0 : SELF_SEAL
      const closed = await this.#waitOut(ref, look, patience, ctx)
      if (closed !== undefined) {
        this.#memory.rename(entry.subject, 'maint', closed.entry)
        return { ref, status: 'unchanged' }
      }
      if (!busyLately) {
        return {
          ref,
          ...reject(
            'UNSUPPORTED',
            `${formatRef(ref)} is in TROFS without work and was not disabled once more: what that does is not documented. It goes OUT OF SERVICE when the last client with a persistence entry is gone, or set trofsPersistence to DISABLED on the virtual server`,
            change,
          ),
        }
      }
    }
    const deed = (): void => this.#memory.did(entry.subject, 'maint', false)
    return this.#write(errand, disable(entry.subject, false), isClosed, deed)
  }

  async #restore(
    { ref, expect, to }: Extract<Change, { kind: 'restore' }>,
    errand: Errand,
  ): Promise<ChangeResult> {
    const { change, found } = errand
    const { entry, own } = found
    if (own === to) return { ref, status: 'unchanged' }
    if (own !== expect) {
      const why = `${formatRef(ref)} is '${own}' ('${entry.svrstate}'), not '${expect}' as it was left, nothing was sent; ready() opens it whoever closed it`
      return { ref, ...reject('CONFLICT', why, change, false) }
    }
    if (to === 'maint') return this.#maint(errand)
    if (to === 'drain' && entry.phase === 'out') {
      // There is no way from OUT OF SERVICE back to TROFS but through service: it stays closed.
      this.#memory.rename(entry.subject, 'drain', entry)
      return { ref, status: 'applied' }
    }
    if (to === 'drain') return this.#drain(errand)
    const deed = (): void => this.#memory.forget(entry.subject)
    return this.#write(errand, enable(entry.subject), isIn, deed)
  }

  /** A disable without grace cuts what is established, where downStateFlush is on. */
  async #terminate(errand: Errand): Promise<ChangeResult> {
    const { change, found } = errand
    const { ref } = change
    const { entry, traits, own, load } = found
    const name = formatRef(ref)
    if (own === 'ready') {
      const why = `${name} is in service, what would be cut comes back at once: hold it first`
      return { ref, ...reject('CONFLICT', why, change, false) }
    }
    if (entry.phase === 'out') {
      if (load === 0) return { ref, status: 'unchanged', terminated: 0 }
      if (load === undefined && traits.flush !== false) return { ref, status: 'unchanged' }
    }
    if (traits.flush === false) {
      const why = `${name} cannot be cut: downStateFlush is DISABLED there, so that connections outlive a disable; enable it, or wait`
      return { ref, ...reject('UNSUPPORTED', why, change) }
    }
    const as = own === 'maint' ? 'maint' : 'drain'
    const deed = (): void => this.#memory.did(entry.subject, as, false)
    const result = await this.#write(errand, disable(entry.subject, false), isClosed, deed)
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
    { change, found: { entry }, look, charge, ctx }: Errand,
    command: Command,
    shows: (phase: SvrPhase) => boolean,
    deed: () => void,
  ): Promise<ChangeResult> {
    const { ref } = change
    const before = this.#memory.of(entry.subject)
    look.writing(entry.subject)
    const undo = entry.phase === 'in' ? enable(entry.subject) : undefined
    const written = await this.#sender.send(change, command, undo, charge, ctx)
    if (written !== 'done' && (written.status === 'rejected' || written.astray === true)) {
      return { ref, status: written.status, error: written.error }
    }
    deed()
    try {
      await look.again(ref)
    } catch (error) {
      if (ctx.signal.aborted || !isDrainableError(error)) throw error
      return written === 'done' ? { ref, status: 'applied' } : { ref, ...written }
    }
    if (written === 'done' && shows !== isClosed) return { ref, status: 'applied' }
    if (written === 'done') {
      if ((await this.#waitOut(ref, look, SHOWS_WITHIN, ctx)) !== undefined) {
        return { ref, status: 'applied' }
      }
      const left = look.of(ref)?.entry
      const why = `${formatRef(ref)}: the appliance said Done to a disable without grace and left it '${left?.svrstate ?? 'gone'}'`
      if (left?.phase !== entry.phase) {
        return { ref, status: 'unknown', error: reject('CONFLICT', why, change).error }
      }
      // In TROFS some build may take a second disable for nothing: then nothing was cut or closed.
      this.#memory.put(entry.subject, before)
      return { ref, ...reject('REJECTED', why, change, false) }
    }
    const found = look.of(ref)
    const shown = found !== undefined && shows(found.entry.phase)
    return shown && (await this.#stillInCharge(charge, ctx))
      ? { ref, status: 'applied' }
      : { ref, ...written }
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
