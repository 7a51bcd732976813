import { caught } from '../../../kit/errors.js'
import { SharedTrials } from '../../../kit/login.js'
import { briefly, Silent } from '../../../kit/retry.js'
import { pause } from '../../../provider/clock.js'
import type { CallContext, LoadScope } from '../../../provider/contract.js'
import { DrainableError } from '../../../provider/error.js'
import { quote } from '../../../provider/quote.js'
import type { Settings } from '../options.js'
import { isNetworkError, NitroSession } from './session.js'
import { isInCharge, type Standing, Standings } from './standing.js'

/** How long one address is waited for while another one could do, in milliseconds. */
const HEAD_START = 1_000

/** One address, and what is asked there. */
interface Address {
  readonly session: NitroSession
  readonly standings: Standings
}

/** An address that is in charge, as it stood when it was asked. */
export interface InCharge extends Address {
  readonly standing: Standing
}

/** All addresses of one appliance, pair or cluster; finds the one to talk to. */
export class Pair {
  readonly #addresses: readonly Address[]
  readonly #away = new Silent<Address>()
  #active: InCharge | undefined
  /** Who was in charge last: asked first. */
  #last: Address | undefined
  /** The nodes of the pair, as far as they were told. */
  #nodes: ReadonlySet<string> = new Set()
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
    return this.#active ?? this.#find(ctx)
  }

  /** Who is in charge now, by its role: asked before something is changed. */
  async confirm(ctx: CallContext): Promise<InCharge> {
    const active = this.#active
    if (active === undefined) return this.#find(ctx)
    try {
      if (isInCharge(await active.standings.role(ctx))) return active
    } catch (error) {
      if (ctx.signal.aborted || !isNetworkError(error)) throw error
    }
    return this.#find(ctx)
  }

  async #find(ctx: CallContext): Promise<InCharge> {
    this.#active = undefined
    const others = this.#addresses.filter((address) => address !== this.#last)
    const order = this.#last === undefined ? others : [this.#last, ...others]
    const [address, standing] = await firstInCharge(order, ctx)
    // Behind the address of last time (a SNIP) is always the same pair.
    if (address !== this.#last) this.#refuseStranger(address, standing.nodes)
    if (standing.nodes.length > 0) this.#nodes = new Set(standing.nodes)
    this.#last = address
    this.#active = { ...address, standing }
    return this.#active
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
      () => 'secondary' as const,
    )
    if (!isInCharge(role)) this.forget()
    return isInCharge(role)
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
        if (told === undefined) this.#away.note(address, 'it does not answer', ctx)
        else
          this.#refuseStranger(
            address,
            told.map((node) => node.address),
          )
      }),
    )
  }

  /**
   * Nodes that may hold traffic beside the one in charge. Where the nodes of a pair have lost each other, both say
   * that they are primary and both pass traffic, and a node that does not answer may do so too. It holds nothing only
   * if it says that it is secondary, or if the node in charge says so.
   *
   * @param counted - whether counts were read: the others are asked as often as counts are, and at each
   * look while there is one
   */
  async rivals(
    charge: InCharge,
    ctx: CallContext,
    counted: boolean,
  ): Promise<readonly LoadScope[]> {
    if (!counted && this.#rivals.length === 0) return []
    const others = this.#addresses.filter(({ session }) => session !== charge.session)
    // A cluster has one address, and its nodes are no pair.
    const asked = charge.standing.role === 'cluster' ? [] : others
    const answers = await Promise.all(asked.map((address) => this.#ask(address, charge, ctx)))
    const silent = asked.find((_, i) => answers[i] === 'silent')
    this.#rivals = [
      ...answers.filter((answer) => typeof answer === 'object'),
      ...(silent === undefined ? [] : await notStandby(charge, silent, ctx)),
    ]
    return this.#rivals
  }

  async close(): Promise<void> {
    await Promise.all(this.#addresses.map(({ session }) => session.close()))
  }

  /** What an address that is not in charge says of itself. */
  async #ask(
    address: Address,
    charge: InCharge,
    ctx: CallContext,
  ): Promise<'standby' | 'silent' | LoadScope> {
    if (this.#away.isLeft(address, ctx)) return 'silent'
    const told = await briefly(ctx, HEAD_START, async (one) => {
      const role = await address.standings.role(one)
      return role === 'secondary' || role === 'unknown' ? role : address.standings.read(one)
    })
    if (told === undefined) this.#away.note(address, 'it does not answer', ctx)
    else this.#away.end(address)
    if (told === undefined || told === 'unknown') return 'silent'
    if (told === 'secondary' || isSame(told, charge.standing)) return 'standby'
    this.#refuseStranger(address, told.nodes)
    const note = `${charge.standing.node} and ${told.node} both say that they are primary: the nodes no longer see each other, and both pass traffic; resolve that ('show ha node') before a member can be reported idle`
    return unread(told.node, note)
  }

  #refuseStranger({ session }: Address, told: readonly string[]): void {
    const nodes = told.filter((node) => node !== '')
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

/** Nodes that the one in charge does not call secondary, where another address is silent. */
async function notStandby(
  { session, standing, standings }: InCharge,
  silent: Address,
  ctx: CallContext,
): Promise<readonly LoadScope[]> {
  if (standing.role !== 'primary') return []
  const peers = (await standings.nodes(ctx)).filter(({ isSelf }) => !isSelf)
  const { host } = new URL(silent.session.url)
  const why = (said: string): string =>
    `${host} does not answer, and ${new URL(session.url).host} ${said}: it may pass traffic; where it is switched off for good, leave its address out of url`
  if (peers.length === 0) return [unread(host, why('does not say what it is'))]
  return peers
    .filter(({ state }) => !/secondary/i.test(state))
    .map(({ address, state }) =>
      unread(
        address === '' ? host : address,
        why(`calls it '${quote(state, 40)}' and not secondary`),
      ),
    )
}

/** A node that may hold traffic although another one is in charge, and that is not counted. */
function unread(scope: string, note: string): LoadScope {
  const zeros = { sampledAt: 0, active: 0, queued: 0, inForce: false }
  return { scope, incarnation: 'beside the node in charge', ...zeros, state: 'unread', note }
}

/** One node by two addresses; where its NSIP may not be known, it is known by the moment of its boot. */
function isSame(one: Standing, other: Standing): boolean {
  if (one.node === other.node) return true
  if (one.nodes.length > 0 || other.nodes.length > 0) return false
  const since = ({ node, incarnation }: Standing): string => incarnation.slice(node.length)
  return one.boot !== undefined && since(one) === since(other)
}

/**
 * An address that hangs keeps no caller waiting: after a moment the next one is asked beside it, and whoever is
 * in charge first is taken.
 *
 * @throws where none is: what the first address said, or the first error that is none of the network
 */
async function firstInCharge(
  order: readonly Address[],
  ctx: CallContext,
): Promise<readonly [Address, Standing]> {
  const stop = new AbortController()
  const one = { ...ctx, signal: AbortSignal.any([ctx.signal, stop.signal]) }
  const failures = new Map<Address, unknown>()
  const { promise, resolve, reject } = Promise.withResolvers<readonly [Address, Standing]>()
  promise.catch(() => undefined)
  const ask = async (address: Address): Promise<boolean> => {
    try {
      const standing = await address.standings.read(one)
      if (isInCharge(standing.role)) {
        resolve([address, standing])
        return true
      }
      failures.set(address, notInCharge(address.session.url))
    } catch (error) {
      failures.set(address, error)
      if (ctx.signal.aborted || !isNetworkError(error)) reject(error)
    }
    const [first] = order
    if (failures.size === order.length && first !== undefined) reject(failures.get(first))
    return false
  }
  try {
    for (const [i, address] of order.entries()) {
      const asked = ask(address)
      if (i === order.length - 1) break
      const hangs = pause(ctx.clock, HEAD_START, one.signal).then(() => false)
      if (await Promise.race([promise.then(() => true), asked, hangs])) break
    }
    return await promise
  } finally {
    stop.abort()
  }
}

/** The error of an address that is not in charge. */
function notInCharge(url: string): DrainableError {
  return new DrainableError(
    'UNREACHABLE',
    `${url} is the secondary node of its pair: it holds no traffic and keeps changes to itself; give the addresses of both nodes or a SNIP with management access`,
    { provider: 'citrix-adc' },
  )
}
