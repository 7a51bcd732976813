import { about, caught, isRefusal } from '../../../kit/errors.js'
import { askedAgain } from '../../../kit/retry.js'
import type { CallContext, Change } from '../../../provider/contract.js'
import { DrainableError, isDrainableError } from '../../../provider/error.js'
import { formatRef } from '../../../provider/member-ref.js'
import { classify, isBusy } from '../codec/errors.js'
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
import type { InCharge, Pair } from '../session/pair.js'
import { BUSY } from '../session/session.js'
import { isInCharge } from '../session/standing.js'

/** The role is asked once for what is sent within so many milliseconds. */
const ROLE_HOLDS = 1_000

/** One change as it is sent. */
export interface Order {
  readonly change: Change
  readonly command: Command
}

/** How one write ended. `apart`: what was said of its list says nothing of it. */
export type Written = 'done' | 'apart' | Failed

/** Refused, or of unknown outcome. */
export interface Failed {
  readonly status: 'rejected' | 'unknown'
  readonly error: DrainableError
}

/** Sends changes: to the node in charge, each one once, and tells what the reply is worth. */
export class Sender {
  readonly #pair: Pair
  readonly #hints = new Map<'unsaved' | 'unheard' | 'forgotten', string>()
  /**
   * Whether this appliance carries out lists: `untried` until one was looked at after its Done, because a
   * build could take the first of a list and leave the others.
   */
  lists: 'untried' | 'proved' | 'none' = 'untried'

  constructor(pair: Pair) {
    this.#pair = pair
  }

  /** What went half well, for whoever asks why. */
  get hints(): readonly string[] {
    return [...this.#hints.values()]
  }

  /** Sends changes of one kind in one request, a list where they are several: what became of each. */
  async send(
    orders: readonly Order[],
    charge: InCharge,
    ctx: CallContext,
  ): Promise<readonly Written[]> {
    const answer = await this.#ask(inOne(orders.map(({ command }) => command)), charge, ctx)
    if ('error' in answer) return orders.map(() => answer)
    const parts = partsOf(answer, orders.length)
    if (parts === undefined && orders.length > 1) {
      const kind = classify(answer)
      const isUntried = kind === 'ok' && this.lists === 'untried'
      if (isUntried || kind === 'refused' || kind === 'absent') return orders.map(() => 'apart')
    }
    return orders.map((order, i) => this.#judge(order, parts?.[i] ?? answer, charge))
  }

  /** A reply, or why there is none. A secondary takes a change, says Done, and passes it on to none. */
  async #ask(command: Command, charge: InCharge, ctx: CallContext): Promise<NitroReply | Failed> {
    const { session, standings } = charge
    const state = { sent: false }
    const ask = async (): Promise<NitroReply> => {
      state.sent = false
      if (!isInCharge(await standings.role(ctx, ROLE_HOLDS))) throw becameSecondary(session.url)
      state.sent = true
      return session.post(command, ctx)
    }
    try {
      // A proxy says 503 also after it has passed the change on.
      const reply = await askedAgain(ctx, BUSY, (one) => isBusy(one) && one.readable, ask)
      // The documentation binds with PUT, the official Go client with POST.
      const isOther = command.method === 'PUT' && isNoMethod(reply)
      return isOther ? await this.#ask({ ...command, method: 'POST' }, charge, ctx) : reply
    } catch (error) {
      if (ctx.signal.aborted || !isDrainableError(error)) throw error
      if (isDrainableError(error, 'CONFLICT')) this.#pair.forget()
      return { status: state.sent && !isRefusal(error) ? 'unknown' : 'rejected', error }
    }
  }

  #judge({ change }: Order, reply: NitroReply, { session }: InCharge): 'done' | Failed {
    const { kind, ref } = change
    const of = classify(reply)
    if (of === 'ok') {
      this.#hints.delete('unheard')
      return 'done'
    }
    const said = session.error(`${kind} ${formatRef(ref)}`, reply)
    const error = about(said, { provider: 'citrix-adc', ref })
    switch (of) {
      case 'applied-here':
        this.#hints.set(
          'unheard',
          `the other node of the pair did not hear of a change, and after a failover it is as it was: ${error.message}; look at 'show ha node' and synchronize ('force ha sync')`,
        )
        return 'done'
      case 'open':
      case 'unreadable':
        return { status: 'unknown', error }
      case 'wrong-node':
        // A secondary that took it all the same is told the configuration of the primary when they synchronize.
        this.#pair.forget()
        return { status: 'rejected', error }
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
        return of satisfies never
    }
  }

  /**
   * Deletes the persistence entries of the virtual servers that these are bound to.
   *
   * @throws why it was not done
   */
  async forget(subjects: readonly Subject[], charge: InCharge, ctx: CallContext): Promise<void> {
    const vservers = await virtualServers(subjects, charge, ctx)
    for (const vserver of vservers) {
      const answer = await this.#ask(forgetPersistence(vserver), charge, ctx)
      if ('error' in answer) throw answer.error
      // One that is not there has none.
      if (!['ok', 'absent', 'applied-here'].includes(classify(answer))) {
        throw charge.session.error(`persistence entries of ${vserver}`, answer)
      }
    }
    if (vservers.length === 0) return
    const words = `the persistence entries of all clients of ${vservers.join(', ')} were deleted: they are balanced anew`
    this.#hints.set('forgotten', words)
  }

  /** Writes the whole running configuration, other people's changes too: only where that is asked for. */
  async save({ session }: InCharge, ctx: CallContext): Promise<void> {
    const path = pathOf('config', 'nsconfig', undefined, 'action=save')
    const save = async (): Promise<string | undefined> => {
      const command = { path, body: { nsconfig: {} } }
      const reply = await askedAgain(ctx, BUSY, isBusy, () => session.post(command, ctx))
      // Nothing has changed since it was saved last: 1133.
      const saved = ['ok', 'applied-here'].includes(classify(reply)) || reply.errorcode === 1133
      return saved ? undefined : session.error('save', reply).message
    }
    const why = await caught(ctx, save, ({ message }) => message)
    if (why === undefined) this.#hints.delete('unsaved')
    else
      this.#hints.set(
        'unsaved',
        `the configuration was not saved, and a reboot forgets the change: ${why}; save it ('save ns config')`,
      )
  }
}

/**
 * The virtual servers that members and services are bound to, each of them once.
 *
 * `servicegroupbindings` and `svcbindings` have a row of the group or the service itself, without
 * `vservername`, and one for each virtual server (NITRO 10.5 to 14.1).
 */
async function virtualServers(
  subjects: readonly Subject[],
  { session }: InCharge,
  ctx: CallContext,
): Promise<readonly string[]> {
  const asked = subjects.map((subject) =>
    subject.kind === 'service'
      ? pathOf('config', 'svcbindings', undefined, argsOf('args', { servicename: subject.name }))
      : pathOf(
          'config',
          'servicegroupbindings',
          undefined,
          argsOf('args', { servicegroupname: subject.group }),
        ),
  )
  const replies = await Promise.all([...new Set(asked)].map((path) => session.get(path, ctx)))
  const rows = replies.flatMap((reply) => [
    ...rowsOf(reply, 'svcbindings'),
    ...rowsOf(reply, 'servicegroupbindings'),
  ])
  const names = rows.map((row) => row.at('vservername').word() ?? '')
  return [...new Set(names)].filter((name) => name !== '').sort()
}

/** Refused for its method alone. */
function isNoMethod(reply: NitroReply): boolean {
  return classify(reply) === 'refused' && (reply.status === 405 || reply.errorcode === 1240)
}

function becameSecondary(url: string): DrainableError {
  const why = `${url} became the secondary of its pair, nothing was sent`
  return new DrainableError('CONFLICT', why, { provider: 'citrix-adc', retryable: true })
}
