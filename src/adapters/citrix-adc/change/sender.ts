import type { CallContext, Change } from '../../../provider/contract.js'
import { pause } from '../../../provider/clock.js'
import type { DrainableError } from '../../../provider/error.js'
import { isDrainableError } from '../../../provider/error.js'
import { formatRef } from '../../../provider/member-ref.js'
import { type Command, pathOf } from '../codec/nitro.js'
import { classify, isWarning } from '../codec/errors.js'
import { isInCharge } from '../session/standing.js'
import type { InCharge, Pair } from '../session/pair.js'
import type { ChangeOutcome } from '../../../kit/change.js'
import { about, leftBehind, refusal } from '../../../kit/errors.js'
import { isNetworkError } from '../session/session.js'

/** How often a busy appliance is asked to change something, and the first wait in between, in milliseconds. */
const TRIES = 4
const FIRST_WAIT = 250

/** How one write ended. */
export type Written =
  | 'done'
  | (ChangeOutcome & { readonly status: 'rejected'; readonly error: DrainableError })
  | {
      readonly status: 'unknown'
      readonly error: DrainableError
      /** A node that is not in charge took it: what that node shows says nothing. */
      readonly astray?: true
    }

/** Sends changes: to the node in charge, each one once, and tells what the reply is worth. */
export class Sender {
  readonly #pair: Pair
  #unsaved: string | undefined
  #unheard: string | undefined

  constructor(pair: Pair) {
    this.#pair = pair
  }

  /** What went half well, for whoever asks why. */
  get hints(): readonly string[] {
    return [this.#unsaved, this.#unheard].filter((hint) => hint !== undefined)
  }

  /**
   * Sends one change.
   *
   * @param undo - what takes it back from a node that took it without being in charge; none where that could cut
   */
  async send(
    change: Change,
    command: Command,
    undo: Command | undefined,
    charge: InCharge,
    ctx: CallContext,
  ): Promise<Written> {
    const { session, standings } = charge
    const what = `${change.kind} ${formatRef(change.ref)}`
    const subject = { provider: 'citrix-adc', ref: change.ref }
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
          this.#unheard = undefined
          return 'done'
        case 'applied-here':
          this.#unheard = `the other node of the pair did not hear of a change: ${session.error(what, reply).message}`
          return 'done'
        case 'open':
        case 'unreadable':
          return { status: 'unknown', error: session.error(what, reply) }
        case 'wrong-node': {
          this.#pair.forget()
          const error = about(session.error(what, reply), subject)
          if (!isWarning(reply)) return { status: 'rejected', error }
          return this.#takeBack(error, undo, charge, ctx)
        }
        case 'busy':
          // A proxy says 503 also after it has passed the change on.
          if (!reply.readable) return { status: 'unknown', error: session.error(what, reply) }
          if (attempt < TRIES) break
          return { status: 'rejected', error: about(session.error(what, reply), subject) }
        case 'relogin':
        case 'credentials':
        case 'rights':
        case 'absent':
        case 'refused':
          return { status: 'rejected', error: about(session.error(what, reply), subject) }
        default:
          kind satisfies never
      }
      await pause(ctx.clock, FIRST_WAIT * 2 ** (attempt - 1), ctx.signal)
    }
  }

  /** A secondary says with a warning that it took a change; the primary knows nothing of it. */
  async #takeBack(
    error: DrainableError,
    undo: Command | undefined,
    { session }: InCharge,
    ctx: CallContext,
  ): Promise<Written> {
    const left = (why: string): Written => {
      const words = `this node took it, and it could not be put back there: ${why}`
      return { status: 'unknown', astray: true, error: leftBehind(error, words) }
    }
    if (undo === undefined) return left('a disable may cut')
    try {
      const reply = await session.post(undo, ctx)
      const taken = classify(reply) === 'ok' || isWarning(reply)
      return taken ? { status: 'rejected', error } : left(session.error('enable', reply).message)
    } catch (failure) {
      if (ctx.signal.aborted || !isDrainableError(failure)) throw failure
      return left(failure.message)
    }
  }

  /** Writes the whole running configuration, other people's changes too: only where that is asked for. */
  async save({ session }: InCharge, ctx: CallContext): Promise<void> {
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

  #wrongNode({ ref }: Change, url: string): Written {
    this.#pair.forget()
    const why = `${formatRef(ref)}: ${url} became the secondary of its pair, nothing was sent`
    const error = refusal('CONFLICT', why, { provider: 'citrix-adc', ref })
    return { status: 'rejected', error }
  }
}
