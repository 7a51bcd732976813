import type { CallContext, Change, ChangeResult } from '../../provider/contract.js'
import { pause } from '../../provider/clock.js'
import { parseDuration } from '../../provider/duration.js'
import { DrainableError, isDrainableError } from '../../provider/error.js'
import { formatRef } from '../../provider/member-ref.js'
import { type Command, disable, enable, pathOf } from './codec.js'
import { classify } from './codec-errors.js'
import type { SvrPhase } from './codec-rows.js'
import { isInCharge } from './identity.js'
import type { Memory } from './memory.js'
import { Look, type Standpoint } from './look.js'
import type { ParsedOptions } from './options.js'
import type { InCharge, Pair } from './pair.js'
import { isNetworkError } from './session.js'

/** How often a busy appliance is asked to change something, and the first wait in between, in milliseconds. */
const TRIES = 4
const FIRST_WAIT = 250
/** How long a member without work may take to go OUT OF SERVICE by itself: the appliance looks once a second. */
const SELF_SEAL = 3_000
const SELF_SEAL_LOOK = 250

/** What the caller is told when a change is not made. */
type Refusal = { readonly status: 'rejected'; readonly error: DrainableError }
/** How one write ended. */
type Written = 'done' | Refusal | { readonly status: 'unknown'; readonly error: DrainableError }

/** Carries changes out, one after the other: compare, ask for the role, write, look. */
export class Writer {
  readonly #options: ParsedOptions
  readonly #pair: Pair
  readonly #memory: Memory
  #unsaved: string | undefined
  #unheard: string | undefined

  constructor(options: ParsedOptions, pair: Pair, memory: Memory) {
    this.#options = options
    this.#pair = pair
    this.#memory = memory
  }

  /** What went half well, for whoever asks why. */
  get hints(): readonly string[] {
    return [this.#unsaved, this.#unheard].filter((hint) => hint !== undefined)
  }

  async apply(changes: readonly Change[], ctx: CallContext): Promise<readonly ChangeResult[]> {
    const charge = await this.#pair.find(ctx)
    const look = new Look(charge, this.#memory, ctx)
    try {
      await look.at(changes)
    } catch (error) {
      if (ctx.signal.aborted || isNetworkError(error) || !isDrainableError(error)) throw error
      // Nothing was sent yet: that is a refusal, not an unknown outcome.
      return changes.map((change) => {
        return { ref: change.ref, status: 'rejected', error: withRef(error, change) }
      })
    }
    const results: ChangeResult[] = []
    for (const change of changes) results.push(await this.#one(change, look, charge, ctx))
    if (results.some(({ status }) => status === 'applied') && this.#options.save) {
      await this.#save(charge, ctx)
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
    const found = look.of(ref)
    const refusal = this.#refuse(change, found)
    if (found === undefined || refusal !== undefined) {
      return { ref, ...(refusal ?? notFound(change)) }
    }
    switch (change.kind) {
      case 'hold':
        return change.to === 'drain'
          ? this.#drain(change, found, look, charge, ctx)
          : this.#maint(change, found, look, charge, ctx)
      case 'restore':
        return this.#restore(change, found, look, charge, ctx)
      case 'terminate':
        return this.#terminate(change, found, look, charge, ctx)
      case 'add':
      case 'remove':
        return { ref, ...notFound(change) }
      default:
        return change satisfies never
    }
  }

  /** What speaks against a change before anything is sent. */
  #refuse(change: Change, found: Standpoint | undefined): Refusal | undefined {
    if (found === undefined) return notFound(change)
    const { entry, traits, own } = found
    const name = formatRef(change.ref)
    if (change.identity !== undefined && change.identity !== entry.identity) {
      return reject(
        'CONFLICT',
        `${name} is another member now (another server, address or port), nothing was sent`,
        change,
        false,
      )
    }
    if (own === 'unknown') {
      return reject(
        'CONFLICT',
        `${name} is '${entry.svrstate}', which says nothing about its state, nothing was sent`,
        change,
      )
    }
    const desired = traits.autoscale === 'API' || traits.autoscale === 'DNS'
    if (desired && this.#options.desiredState === 'refuse') {
      return reject(
        'UNSUPPORTED',
        `service group '${change.ref.pool}' has autoscale ${traits.autoscale}: its members are kept by the desired state or by DNS, drain there, or set desiredState: 'try'`,
        change,
      )
    }
    return undefined
  }

  async #drain(
    change: Change,
    found: Standpoint,
    look: Look,
    charge: InCharge,
    ctx: CallContext,
  ): Promise<ChangeResult> {
    if (found.own !== 'ready') return { ref: change.ref, status: 'unchanged' }
    const { subject, phase } = found.entry
    const command = disable(subject, true)
    const deed = (): void => this.#memory.did(subject, 'drain', phase === 'in')
    return this.#write(change, command, isOut, deed, look, charge, ctx)
  }

  /**
   * Closes the door to everybody. A member of ours in TROFS or out of service closes it by itself, so
   * a seal is waited for and never sent; a member that clients with a persistence entry keep busy is
   * disabled without grace.
   */
  async #maint(
    change: Change,
    found: Standpoint,
    look: Look,
    charge: InCharge,
    ctx: CallContext,
  ): Promise<ChangeResult> {
    const { ref } = change
    const { entry, own } = found
    if (own === 'maint') return { ref, status: 'unchanged' }
    const freshness = parseDuration(this.#options.freshness, 'freshness')
    const busyLately =
      found.load > 0 || this.#memory.restedFor(entry.subject, ctx.clock.now()) < freshness
    if (own === 'drain' && (entry.phase === 'out' || found.load === 0)) {
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
    return this.#write(change, disable(entry.subject, false), isClosed, deed, look, charge, ctx)
  }

  async #restore(
    change: Extract<Change, { kind: 'restore' }>,
    found: Standpoint,
    look: Look,
    charge: InCharge,
    ctx: CallContext,
  ): Promise<ChangeResult> {
    const { ref, expect, to } = change
    const { entry, own } = found
    if (own === to) return { ref, status: 'unchanged' }
    if (own !== expect) {
      const why = `${formatRef(ref)} is '${own}' ('${entry.svrstate}'), not '${expect}' as it was left, nothing was sent; ready() opens it whoever closed it`
      return { ref, ...reject('CONFLICT', why, change, false) }
    }
    if (to === 'maint') return this.#maint(change, found, look, charge, ctx)
    if (to === 'drain' && entry.phase === 'out') {
      // There is no way from OUT OF SERVICE back to TROFS but through service: it stays closed.
      this.#memory.rename(entry.subject, 'drain', entry)
      return { ref, status: 'applied' }
    }
    if (to === 'drain') return this.#drain(change, found, look, charge, ctx)
    const deed = (): void => this.#memory.forget(entry.subject)
    return this.#write(change, enable(entry.subject), isIn, deed, look, charge, ctx)
  }

  /** A disable without grace cuts what is established, where downStateFlush is on. */
  async #terminate(
    change: Change,
    found: Standpoint,
    look: Look,
    charge: InCharge,
    ctx: CallContext,
  ): Promise<ChangeResult> {
    const { ref } = change
    const { entry, traits, own, load } = found
    const name = formatRef(ref)
    if (own === 'ready') {
      const why = `${name} is in service, what would be cut comes back at once: hold it first`
      return { ref, ...reject('CONFLICT', why, change, false) }
    }
    if (load === 0 && entry.phase === 'out') return { ref, status: 'unchanged', terminated: 0 }
    if (traits.flush === false) {
      const why = `${name} cannot be cut: downStateFlush is DISABLED there, so that connections outlive a disable; enable it, or wait`
      return { ref, ...reject('UNSUPPORTED', why, change) }
    }
    const as = own === 'maint' ? 'maint' : 'drain'
    const deed = (): void => this.#memory.did(entry.subject, as, false)
    const result = await this.#write(
      change,
      disable(entry.subject, false),
      isClosed,
      deed,
      look,
      charge,
      ctx,
    )
    return result.status === 'applied' ? { ...result, terminated: load, atMost: true } : result
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
      if (found?.entry.phase !== 'trofs' || ctx.clock.now() >= until) return undefined
      await pause(ctx.clock, SELF_SEAL_LOOK, ctx.signal)
      await look.again(ref)
    }
  }

  /**
   * Sends one change and looks at what became of it. Nothing is ever sent twice without a look in
   * between: a second disable may restart the appliance's timers.
   */
  async #write(
    change: Change,
    command: Command,
    shows: (phase: SvrPhase) => boolean,
    deed: () => void,
    look: Look,
    charge: InCharge,
    ctx: CallContext,
  ): Promise<ChangeResult> {
    const { ref } = change
    const written = await this.#send(change, command, charge, ctx)
    if (written !== 'done' && written.status === 'rejected') return { ref, ...written }
    deed()
    try {
      await look.again(ref)
    } catch (error) {
      if (ctx.signal.aborted || !isDrainableError(error)) throw error
      return written === 'done' ? { ref, status: 'applied' } : { ref, ...written }
    }
    if (written === 'done') return { ref, status: 'applied' }
    const found = look.of(ref)
    return found !== undefined && shows(found.entry.phase)
      ? { ref, status: 'applied' }
      : { ref, ...written }
  }

  async #send(
    change: Change,
    command: Command,
    charge: InCharge,
    ctx: CallContext,
  ): Promise<Written> {
    const { session, standings } = charge
    const what = `${change.kind} ${formatRef(change.ref)}`
    for (let attempt = 1; ; attempt++) {
      try {
        // A secondary takes the change, says Done, and tells nobody.
        if (!isInCharge(await standings.role(ctx))) return this.#wrongNode(change, session.url)
      } catch (error) {
        if (ctx.signal.aborted || !isNetworkError(error)) throw error
        return { status: 'unknown', error }
      }
      let reply
      try {
        reply = await session.post(command, ctx)
      } catch (error) {
        if (ctx.signal.aborted || !isDrainableError(error)) throw error
        if (isNetworkError(error)) return { status: 'unknown', error }
        return { status: 'rejected', error }
      }
      const kind = classify(reply)
      switch (kind) {
        case 'ok':
          return 'done'
        case 'applied-here':
          this.#unheard = `the other node of the pair did not hear of a change: ${session.error(what, reply).message}`
          return 'done'
        case 'open':
        case 'unreadable':
          return { status: 'unknown', error: session.error(what, reply) }
        case 'wrong-node':
          this.#pair.forget()
          return { status: 'rejected', error: withRef(session.error(what, reply), change) }
        case 'busy':
          if (attempt < TRIES) break
          return { status: 'rejected', error: withRef(session.error(what, reply), change) }
        case 'relogin':
        case 'credentials':
        case 'rights':
        case 'absent':
        case 'refused':
          return { status: 'rejected', error: withRef(session.error(what, reply), change) }
        default:
          kind satisfies never
      }
      await pause(ctx.clock, FIRST_WAIT * 2 ** (attempt - 1), ctx.signal)
    }
  }

  #wrongNode(change: Change, url: string): Refusal {
    this.#pair.forget()
    const why = `${formatRef(change.ref)}: ${url} became the secondary of its pair, nothing was sent`
    return reject('CONFLICT', why, change)
  }

  /** Writes the whole running configuration, other people's changes too: only where that is asked for. */
  async #save({ session }: InCharge, ctx: CallContext): Promise<void> {
    const path = pathOf('config', 'nsconfig', undefined, 'action=save')
    for (let attempt = 1; ; attempt++) {
      try {
        const reply = await session.post({ path, body: { nsconfig: {} } }, ctx)
        const kind = classify(reply)
        const saved = kind === 'ok' || kind === 'applied-here' || reply.errorcode === 1133
        this.#unsaved = saved
          ? undefined
          : session.error('the configuration was not saved', reply).message
        if (kind !== 'busy' || attempt === TRIES) return
      } catch (error) {
        if (ctx.signal.aborted) return
        this.#unsaved = `the configuration was not saved: ${error instanceof Error ? error.message : String(error)}`
        return
      }
      await pause(ctx.clock, FIRST_WAIT * 2 ** (attempt - 1), ctx.signal)
    }
  }
}

const isIn = (phase: SvrPhase): boolean => phase === 'in'
const isOut = (phase: SvrPhase): boolean => phase === 'trofs' || phase === 'out'
const isClosed = (phase: SvrPhase): boolean => phase === 'out'

function refuseUnsupported(change: Change): Refusal | undefined {
  if (change.kind === 'remove') {
    const why = `${formatRef(change.ref)} is not unbound here, since that cuts what is left on it: drain it, then unbind it with the tool that owns the configuration`
    return reject('UNSUPPORTED', why, change)
  }
  if (change.kind === 'add') {
    const why = `${formatRef(change.ref)} is not bound here: bind it with the tool that owns the configuration, then make it ready`
    return reject('UNSUPPORTED', why, change)
  }
  return undefined
}

function notFound(change: Change): Refusal {
  const why = `${formatRef(change.ref)}: neither a service group with that member ('server:port') nor a virtual server with that service`
  return reject('NOT_FOUND', why, change)
}

function reject(
  code: 'CONFLICT' | 'UNSUPPORTED' | 'NOT_FOUND',
  why: string,
  { ref }: Change,
  retryable?: boolean,
): Refusal {
  const data = { provider: 'citrix-adc', ref, ...(retryable === undefined ? {} : { retryable }) }
  return { status: 'rejected', error: new DrainableError(code, why, data) }
}

function withRef(error: DrainableError, { ref }: Change): DrainableError {
  const { code, message, retryable } = error
  return new DrainableError(code, message, { provider: 'citrix-adc', ref, retryable })
}
