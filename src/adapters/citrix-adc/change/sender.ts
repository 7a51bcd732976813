import type { CallContext, Change } from '../../../provider/contract.js'
import { DrainableError, isDrainableError } from '../../../provider/error.js'
import { formatRef } from '../../../provider/member-ref.js'
import {
  argsOf,
  type Command,
  forgetPersistence,
  inOne,
  type NitroReply,
  partsOf,
  pathOf,
  rowsOf,
  type Subject,
} from '../codec/nitro.js'
import type { Entry } from '../codec/rows.js'
import { classify, isBusy, isWarning } from '../codec/errors.js'
import { type InCharge, isInCharge } from '../session/standing.js'
import type { Pair } from '../session/pair.js'
import { about, caught, isRefusal, leftBehind } from '../../../kit/errors.js'
import { askedAgain } from '../../../kit/retry.js'
import { BUSY, type NitroSession } from '../session/session.js'

/** The role is asked once for what is sent within so many milliseconds. */
const ROLE_HOLDS = 1_000

/** One change as it is sent. */
export interface Order {
  readonly change: Change
  readonly command: Command
  /** The same for a build that does not know that method: only of an order that is sent alone. */
  readonly otherwise?: Command
  /** What takes it back from a node that took it without being in charge; none where that could cut. */
  readonly undo?: Command | undefined
}

/** How one write ended. */
export type Written =
  | 'done'
  | { readonly status: 'rejected'; readonly error: DrainableError }
  | {
      readonly status: 'unknown'
      readonly error: DrainableError
      /** A node that is not in charge took it: what that node shows says nothing. */
      readonly astray?: true
    }

/** Sends changes: to the node in charge, each one once, and tells what the reply is worth. */
export class Sender {
  readonly #pair: Pair
  /**
   * Whether this appliance carries out lists: `untried` until one was looked at after its Done, because a
   * build could take the first of a list and leave the others.
   */
  lists: 'untried' | 'proved' | 'none' = 'untried'
  #unsaved: string | undefined
  #unheard: string | undefined
  #forgotten: string | undefined

  constructor(pair: Pair) {
    this.#pair = pair
  }

  /** What went half well, for whoever asks why. */
  get hints(): readonly string[] {
    return [this.#unsaved, this.#unheard, this.#forgotten].filter((hint) => hint !== undefined)
  }

  /**
   * Sends changes of one kind in one request, a list where they are several.
   *
   * @returns for each what became of it; `apart` where the list as a whole was refused, so that it
   * is not known which of them is to blame: they are to be sent one by one, after a look
   */
  async send(
    orders: readonly Order[],
    charge: InCharge,
    ctx: CallContext,
  ): Promise<readonly Written[] | 'apart'> {
    const all = (written: Written): readonly Written[] => orders.map(() => written)
    let answer = await this.#ask(inOne(orders.map(({ command }) => command)), charge, ctx)
    const [{ otherwise } = {}] = orders
    if (otherwise !== undefined && !('error' in answer) && isNoMethod(answer)) {
      answer = await this.#ask(otherwise, charge, ctx)
    }
    if ('error' in answer) return all(answer)
    const parts = partsOf(answer, orders.length)
    const kind = classify(answer)
    if (parts === undefined && orders.length > 1 && (kind === 'refused' || kind === 'absent')) {
      return 'apart'
    }
    const written = orders.map((order, i) => this.#judge(order, parts?.[i] ?? answer, charge))
    const astray = orders.filter((_, i) => written[i] === 'astray')
    const why = await this.#takeBack(astray, charge, ctx)
    return orders.map((order, i): Written => {
      const one = written[i]
      if (one !== undefined && one !== 'astray') return one
      const error = refusalOf(order, answer, charge)
      const reason = order.undo === undefined ? 'that may cut' : why
      return reason === undefined ? { status: 'rejected', error } : left(error, reason)
    })
  }

  /** A reply, or why there is none. A secondary takes a change, says Done, and passes it on to none. */
  async #ask(
    command: Command,
    { session, standings }: InCharge,
    ctx: CallContext,
  ): Promise<NitroReply | Exclude<Written, 'done'>> {
    const state = { sent: false }
    try {
      // A proxy says 503 also after it has passed the change on.
      const again = (reply: NitroReply): boolean => isBusy(reply) && reply.readable
      return await askedAgain(ctx, BUSY, again, async () => {
        state.sent = false
        if (!isInCharge(await standings.role(ctx, ROLE_HOLDS))) throw becameSecondary(session.url)
        state.sent = true
        return session.post(command, ctx)
      })
    } catch (error) {
      if (ctx.signal.aborted || !isDrainableError(error)) throw error
      if (isDrainableError(error, 'CONFLICT')) this.#pair.forget()
      return { status: state.sent && !isRefusal(error) ? 'unknown' : 'rejected', error }
    }
  }

  #judge(order: Order, reply: NitroReply, charge: InCharge): Written | 'astray' {
    const error = refusalOf(order, reply, charge)
    const kind = classify(reply)
    switch (kind) {
      case 'ok':
        this.#unheard = undefined
        return 'done'
      case 'applied-here':
        this.#unheard = `the other node of the pair did not hear of a change, and after a failover it is as it was: ${error.message}; look at 'show ha node' and synchronize ('force ha sync')`
        return 'done'
      case 'open':
      case 'unreadable':
        return { status: 'unknown', error }
      case 'wrong-node':
        this.#pair.forget()
        return isWarning(reply) ? 'astray' : { status: 'rejected', error }
      case 'busy':
        // What a stranger calls busy may have been passed on.
        return { status: reply.readable ? 'rejected' : 'unknown', error }
      case 'relogin':
      case 'credentials':
      case 'rights':
      case 'absent':
      case 'refused':
        return { status: 'rejected', error }
      default:
        return kind satisfies never
    }
  }

  /**
   * A secondary says with a warning that it took changes; the primary knows nothing of them.
   *
   * @returns why they could not be taken back there; undefined where they were
   */
  async #takeBack(
    orders: readonly Order[],
    { session }: InCharge,
    ctx: CallContext,
  ): Promise<string | undefined> {
    const undos = orders.flatMap(({ undo }) => undo ?? [])
    if (undos.length === 0) return undefined
    const takeBack = async (): Promise<string | undefined> => {
      const reply = await session.post(inOne(undos), ctx)
      const isDone = classify(reply) === 'ok' || isWarning(reply)
      return isDone ? undefined : session.error('enable', reply).message
    }
    return caught(ctx, takeBack, ({ message }) => message)
  }

  /**
   * Deletes the persistence entries of the virtual servers that these are bound to.
   *
   * @returns why it was not done
   */
  async forget(
    entries: readonly Entry[],
    charge: InCharge,
    ctx: CallContext,
  ): Promise<DrainableError | undefined> {
    const vservers = await virtualServers(charge.session, entries, ctx)
    for (const vserver of vservers) {
      const answer = await this.#ask(forgetPersistence(vserver), charge, ctx)
      if ('error' in answer) return answer.error
      const kind = classify(answer)
      // One that is not there has none.
      if (kind !== 'ok' && kind !== 'absent' && kind !== 'applied-here') {
        return charge.session.error(`persistence entries of ${vserver}`, answer)
      }
    }
    if (vservers.length > 0) {
      this.#forgotten = `the persistence entries of all clients of ${vservers.join(', ')} were deleted: they are balanced anew`
    }
    return undefined
  }

  /** Writes the whole running configuration, other people's changes too: only where that is asked for. */
  async save({ session }: InCharge, ctx: CallContext): Promise<void> {
    const path = pathOf('config', 'nsconfig', undefined, 'action=save')
    const unsaved = (why: string): string =>
      `the configuration was not saved, and a reboot forgets the change: ${why}; save it ('save ns config')`
    try {
      const command = { path, body: { nsconfig: {} } }
      const reply = await askedAgain(ctx, BUSY, isBusy, () => session.post(command, ctx))
      const kind = classify(reply)
      const saved = kind === 'ok' || kind === 'applied-here' || reply.errorcode === 1133
      this.#unsaved = saved ? undefined : unsaved(session.error('save', reply).message)
    } catch (error) {
      if (ctx.signal.aborted) return
      this.#unsaved = unsaved(error instanceof Error ? error.message : String(error))
    }
  }
}

/** The error of a reply to a change, for where it is no success. */
function refusalOf(
  { change: { kind, ref } }: Order,
  reply: NitroReply,
  { session }: InCharge,
): DrainableError {
  const error = session.error(`${kind} ${formatRef(ref)}`, reply)
  return about(error, { provider: 'citrix-adc', ref })
}

/** Refused for its method alone. */
function isNoMethod(reply: NitroReply): boolean {
  return classify(reply) === 'refused' && (reply.status === 405 || reply.errorcode === 1240)
}

function left(error: DrainableError, why: string): Written {
  const words = `this node took it, and it could not be put back there: ${why}`
  return { status: 'unknown', astray: true, error: leftBehind(error, words) }
}

function becameSecondary(url: string): DrainableError {
  const why = `${url} became the secondary of its pair, nothing was sent`
  return new DrainableError('CONFLICT', why, { provider: 'citrix-adc', retryable: true })
}

/**
 * The virtual servers that members and services are bound to, each of them once.
 *
 * `servicegroupbindings` and `svcbindings` have a row of the group or the service itself, without
 * `vservername`, and one for each virtual server (NITRO 10.5 to 14.1).
 */
async function virtualServers(
  session: NitroSession,
  entries: readonly Entry[],
  ctx: CallContext,
): Promise<readonly string[]> {
  const owners = new Map(entries.map(({ subject }) => [ownerOf(subject).join('\0'), subject]))
  const found = await Promise.all(
    [...owners.values()].map((subject) => boundTo(session, subject, ctx)),
  )
  return [...new Set(found.flat())].sort()
}

function ownerOf(subject: Subject): readonly [type: string, key: string, name: string] {
  return subject.kind === 'service'
    ? ['svcbindings', 'servicename', subject.name]
    : ['servicegroupbindings', 'servicegroupname', subject.group]
}

async function boundTo(
  session: NitroSession,
  subject: Subject,
  ctx: CallContext,
): Promise<readonly string[]> {
  const [type, key, name] = ownerOf(subject)
  const query = argsOf('args', { [key]: name })
  const rows = rowsOf(await session.get(pathOf('config', type, undefined, query), ctx), type)
  return rows.map((row) => row.at('vservername').word() ?? '').filter((one) => one !== '')
}
