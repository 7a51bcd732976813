import { caught } from '../../../kit/errors.js'
import { SharedTrials } from '../../../kit/login.js'
import { briefly, firstAnswer } from '../../../kit/retry.js'
import type { CallContext } from '../../../provider/contract.js'
import { DrainableError } from '../../../provider/error.js'
import {
  type Address,
  HEAD_START,
  type InCharge,
  isInCharge,
  notInCharge,
  Standings,
} from './standing.js'
import type { Settings } from '../options.js'
import { type Rival, Rivals } from './rivals.js'
import { isNetworkError, NitroSession } from './session.js'

/** All addresses of one appliance, pair or cluster; finds the one to talk to. */
export class Pair {
  readonly #addresses: readonly Address[]
  #active: InCharge | undefined
  /** Who was in charge last: asked first. */
  #last: Address | undefined
  /** The nodes of the pair, as far as they were told. */
  #nodes: ReadonlySet<string> = new Set()
  readonly #others = new Rivals()
  #rivals: readonly Rival[] = []

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
   * Whether what this node shows is the pair's: one that has become the secondary may have taken a change
   * for itself alone. One that does not say is not believed.
   */
  async holds({ standings }: InCharge, ctx: CallContext): Promise<boolean> {
    const role = await caught(
      ctx,
      () => standings.role(ctx),
      () => undefined,
    )
    const holds = role !== undefined && isInCharge(role)
    if (role !== undefined && !holds) this.forget()
    return holds
  }

  /**
   * Asks each address for the nodes of its pair: readings and changes of unrelated appliances would be
   * taken for those of one. An address that does not answer soon is asked when it gets in charge.
   *
   * @throws `INVALID_OPTIONS`
   */
  async refuseStrangers(ctx: CallContext): Promise<void> {
    const { session: charge } = await this.inCharge(ctx)
    const others = this.#addresses.filter(({ session }) => session !== charge)
    await Promise.all(
      others.map(async (address) => {
        const told = await briefly(ctx, HEAD_START, (one) => address.standings.nodes(one))
        if (told === undefined) this.#others.noteSilent(address, ctx)
        else this.#refuseStranger(address, told.nodes)
      }),
    )
  }

  /**
   * Nodes that may hold traffic beside the one in charge.
   *
   * @param counted - whether counts were read: the others are asked as often as counts are, and at each
   * look while there is one
   */
  async rivals(charge: InCharge, ctx: CallContext, counted: boolean): Promise<readonly Rival[]> {
    if (!counted && this.#rivals.length === 0) return []
    const others = this.#addresses.filter(({ session }) => session !== charge.session)
    const refuse = (address: Address, nodes: readonly string[]): void =>
      this.#refuseStranger(address, nodes)
    this.#rivals = others.length === 0 ? [] : await this.#others.look(charge, others, refuse, ctx)
    return this.#rivals
  }

  async close(): Promise<void> {
    await Promise.all(this.#addresses.map(({ session }) => session.close()))
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
