import { SharedTrials } from '../../../kit/login.js'
import { briefly, firstAnswer, Silent } from '../../../kit/retry.js'
import type { CallContext, LoadScope } from '../../../provider/contract.js'
import { DrainableError } from '../../../provider/error.js'
import { quote } from '../../../provider/quote.js'
import {
  type Address,
  HEAD_START,
  type InCharge,
  isInCharge,
  notInCharge,
  type Standing,
  Standings,
} from './standing.js'
import type { Settings } from '../options.js'
import { isNetworkError, NitroSession } from './session.js'

/** All addresses of one appliance, pair or cluster; finds the one to talk to. */
export class Pair {
  readonly #addresses: readonly Address[]
  #active: InCharge | undefined
  /** Who was in charge last: asked first. */
  #last: Address | undefined
  /** The nodes of the pair, as far as they were told. */
  #nodes: ReadonlySet<string> = new Set()
  readonly #away = new Silent<Address>()
  #rivals: readonly LoadScope[] = []

  constructor(options: Settings) {
    const trials = options.urls.length > 1 ? new SharedTrials() : undefined
    this.#addresses = options.urls.map((url) => {
      const session = new NitroSession(url, options, trials)
      return { session, standings: new Standings(session) }
    })
  }

  /** Who was in charge at the last look, without another one; found where none was yet. */
  async inCharge(ctx: CallContext): Promise<InCharge> {
    return this.#active ?? this.find(ctx)
  }

  /** Who is in charge now, by its role: asked before something is changed. */
  async confirm(ctx: CallContext): Promise<InCharge> {
    const active = this.#active
    if (active === undefined) return this.find(ctx)
    try {
      if (isInCharge(await active.standings.role(ctx))) return active
    } catch (error) {
      if (ctx.signal.aborted || !isNetworkError(error)) throw error
    }
    return this.find(ctx)
  }

  /**
   * Asks again who is in charge. An address that hangs keeps no caller waiting: after a moment the next one
   * is asked beside it, and whoever is in charge first is taken.
   */
  async find(ctx: CallContext): Promise<InCharge> {
    this.#active = undefined
    const order = [...this.#addresses].sort(
      (a, b) => Number(b === this.#last) - Number(a === this.#last),
    )
    const isFinal = (error: unknown): boolean => !isNetworkError(error)
    const ask = async (asked: Address, one: CallContext): Promise<InCharge> => {
      const told = await asked.standings.read(one)
      if (isInCharge(told.role)) return { ...asked, standing: told }
      throw notInCharge(asked.session.url)
    }
    const charge = await firstAnswer(order, { headStart: HEAD_START, isFinal }, ask, ctx)
    const { session, standing } = charge
    const address = order.find((one) => one.session === session)
    // Behind the address of last time (a SNIP) is always the same pair.
    if (address !== this.#last) this.#refuseStranger(charge, standing.nodes)
    if (standing.nodes.length > 0) this.#nodes = new Set(standing.nodes)
    this.#last = address
    this.#active = charge
    return charge
  }

  /** What was in charge is not to be relied on any more. */
  forget(): void {
    this.#active = undefined
  }

  /**
   * Whether the same node is still in charge, in the same incarnation: a reading in between is one
   * of it.
   *
   * @param boot - whether counts were read, which a reboot would have set back
   */
  async stillInCharge(before: InCharge, ctx: CallContext, boot: boolean): Promise<boolean> {
    const standing = await before.standings.read(ctx, { boot })
    const same = standing.incarnation === before.standing.incarnation && isInCharge(standing.role)
    if (!same) this.forget()
    return same
  }

  /**
   * Asks each address for the nodes of its pair: readings and changes of unrelated appliances would be
   * taken for those of one. An address that does not answer soon is asked when it gets in charge.
   *
   * @throws `INVALID_OPTIONS`
   */
  async refuseStrangers(ctx: CallContext): Promise<void> {
    const others = this.#besides(await this.inCharge(ctx))
    await Promise.all(
      others.map(async (address) => {
        const told = await briefly(ctx, HEAD_START, (one) => address.standings.nodes(one))
        if (told === undefined) this.#away.note(address, SILENT, ctx)
        else this.#refuseStranger(address, told.nodes)
      }),
    )
  }

  /**
   * Nodes that may hold traffic beside the one in charge, as processes that are not counted. Where the nodes of a pair have
   * lost each other, both say that they are primary and both pass traffic, and a node that does not answer may do so
   * too. It holds nothing only if it says that it is secondary, or if the node in charge says so.
   *
   * @param counted - whether counts were read: the others are asked as often as counts are, and at each
   * look while there is one
   * @throws `INVALID_OPTIONS` where one is of another pair
   */
  async rivals(
    charge: InCharge,
    ctx: CallContext,
    counted: boolean,
  ): Promise<readonly LoadScope[]> {
    // A cluster has one address, and its nodes are no pair.
    if (charge.standing.role === 'cluster') return []
    if (!counted && this.#rivals.length === 0) return []
    const others = this.#besides(charge)
    const answers = await Promise.all(others.map((address) => this.#ask(address, charge, ctx)))
    const [silent] = others.filter((_, i) => answers[i] === 'silent')
    const unseen = silent === undefined ? [] : await notStandby(charge, silent, ctx)
    this.#rivals = [...answers.filter((answer) => typeof answer === 'object'), ...unseen]
    return this.#rivals
  }

  async close(): Promise<void> {
    await Promise.all(this.#addresses.map(({ session }) => session.close()))
  }

  #besides(charge: InCharge): readonly Address[] {
    return this.#addresses.filter(({ session }) => session !== charge.session)
  }

  /** What an address that is not in charge says of itself. `idle`: nothing of it is beside the node in charge. */
  async #ask(
    address: Address,
    charge: InCharge,
    ctx: CallContext,
  ): Promise<'idle' | 'silent' | LoadScope> {
    if (this.#away.isLeft(address, ctx)) return 'silent'
    const told = await briefly(ctx, HEAD_START, async (one) => {
      const role = await address.standings.role(one)
      if (role === 'secondary' || role === 'unknown') return { role, standing: undefined }
      return { role, standing: await address.standings.read(one) }
    })
    if (told === undefined) {
      this.#away.note(address, SILENT, ctx)
      return 'silent'
    }
    this.#away.end(address)
    const { role, standing } = told
    if (role === 'secondary') return 'idle'
    if (standing === undefined) return 'silent'
    if (isSame(standing, charge.standing)) return 'idle'
    const { node, nodes } = standing
    this.#refuseStranger(address, nodes)
    const note = `${charge.standing.node} and ${node} both say that they are primary: the nodes no longer see each other, and both pass traffic; resolve that ('show ha node') before a member can be reported idle`
    return toUnread(node, note)
  }

  #refuseStranger({ session }: Address, nodes: readonly string[]): void {
    if (nodes.length === 0 || this.#nodes.size === 0) return
    if (nodes.some((node) => this.#nodes.has(node))) return
    const known = [...this.#nodes].join(', ')
    throw new DrainableError(
      'INVALID_OPTIONS',
      `citrixAdc(): url: ${session.url} is node ${nodes.join(', ')} and no node of the pair of ${known}; give the addresses of one appliance, pair or cluster, and join several with combineProviders()`,
      { provider: 'citrix-adc' },
    )
  }
}

const SILENT = 'it does not answer'

/** Nodes that the one in charge does not call secondary. */
async function notStandby(
  { session, standing, standings }: InCharge,
  silent: Address,
  ctx: CallContext,
): Promise<readonly LoadScope[]> {
  if (standing.role !== 'primary') return []
  const peers = await standings.peers(ctx)
  const { host } = new URL(silent.session.url)
  const why = (said: string): string =>
    `${host} does not answer, and ${new URL(session.url).host} ${said}: it may pass traffic; where it is switched off for good, leave its address out of url`
  if (peers.length === 0) return [toUnread(host, why('does not say what it is'))]
  return peers
    .filter(({ state }) => !/secondary/i.test(state))
    .map(({ node, state }) =>
      toUnread(node === '' ? host : node, why(`calls it '${quote(state, 40)}' and not secondary`)),
    )
}

/** @param scope - its NSIP where that is known, else the host of its address */
function toUnread(scope: string, note: string): LoadScope {
  const zeros = { sampledAt: 0, active: 0, queued: 0, inForce: false }
  return { scope, incarnation: 'beside the node in charge', ...zeros, state: 'unread', note }
}

/** One node by two addresses; where its NSIP may not be known, it is known by the moment of its boot. */
function isSame(one: Standing, other: Standing): boolean {
  if (one.node === other.node) return true
  if (one.nodes.length > 0 || other.nodes.length > 0) return false
  const since = ({ node, incarnation }: Standing): string => incarnation.slice(node.length)
  return /up since/.test(one.incarnation) && since(one) === since(other)
}
