import { briefly, Silent } from '../../../kit/retry.js'
import type { CallContext } from '../../../provider/contract.js'
import { quote } from '../../../provider/quote.js'
import { type Address, HEAD_START, type InCharge, type Standing } from './standing.js'

/** A node that may hold traffic although another one is in charge. */
export interface Rival {
  /** Its NSIP where that is known, else the host of its address. */
  readonly scope: string
  /** Why it may, for a person. */
  readonly note: string
}

/** What an address that is not in charge says of itself. `same`: the node in charge, by another address. */
type Answer = 'standby' | 'same' | 'silent' | Rival

/**
 * The other addresses of a pair. Where its nodes have lost each other, both say that they are primary and
 * both pass traffic, and a node that does not answer may do so too. It holds nothing only if it says that it
 * is secondary, or if the node in charge says so.
 */
export class Rivals {
  readonly #away = new Silent<Address>()

  /**
   * @param refuse - called with the nodes of one that is no secondary: it may be of another pair
   * @throws what `refuse` throws
   */
  async look(
    charge: InCharge,
    others: readonly Address[],
    refuse: (address: Address, nodes: readonly string[]) => void,
    ctx: CallContext,
  ): Promise<readonly Rival[]> {
    // A cluster has one address, and its nodes are no pair.
    if (charge.standing.role === 'cluster') return []
    const answers = await Promise.all(
      others.map((address) => this.#ask(address, charge, refuse, ctx)),
    )
    const rivals = answers.filter((answer) => typeof answer === 'object')
    const silent = others.filter((_, i) => answers[i] === 'silent')
    const [first] = silent
    if (first === undefined) return rivals
    return [...rivals, ...(await this.#notStandby(charge, first, ctx))]
  }

  /** It has just not answered: it is left alone for a while. */
  noteSilent(address: Address, ctx: CallContext): void {
    this.#away.note(address, 'it does not answer', ctx)
  }

  async #ask(
    address: Address,
    charge: InCharge,
    refuse: (address: Address, nodes: readonly string[]) => void,
    ctx: CallContext,
  ): Promise<Answer> {
    if (this.#away.isLeft(address, ctx)) return 'silent'
    const told = await briefly(ctx, HEAD_START, async (one) => {
      const role = await address.standings.role(one)
      if (role === 'secondary' || role === 'unknown') return { role, standing: undefined }
      return { role, standing: await address.standings.read(one) }
    })
    if (told === undefined) {
      this.noteSilent(address, ctx)
      return 'silent'
    }
    this.#away.end(address)
    const { role, standing } = told
    if (role === 'secondary') return 'standby'
    if (standing === undefined) return 'silent'
    if (isSame(standing, charge.standing)) return 'same'
    const { node, nodes } = standing
    refuse(address, nodes)
    const note = `${charge.standing.node} and ${node} both say that they are primary: the nodes no longer see each other, and both pass traffic; resolve that ('show ha node') before a member can be reported idle`
    return { scope: node, note }
  }

  /** Nodes that the one in charge does not call secondary. */
  async #notStandby(
    { session, standing, standings }: InCharge,
    silent: Address,
    ctx: CallContext,
  ): Promise<readonly Rival[]> {
    if (standing.role !== 'primary') return []
    const peers = await standings.peers(ctx)
    const { host } = new URL(silent.session.url)
    const why = (said: string): string =>
      `${host} does not answer, and ${new URL(session.url).host} ${said}: it may pass traffic; where it is switched off for good, leave its address out of url`
    if (peers.length === 0) return [{ scope: host, note: why('does not say what it is') }]
    return peers
      .filter(({ state }) => !/secondary/i.test(state))
      .map(({ node, state }) => ({
        scope: node === '' ? host : node,
        note: why(`calls it '${quote(state, 40)}' and not secondary`),
      }))
  }
}

/** One node by two addresses; where its NSIP may not be known, it is known by the moment of its boot. */
function isSame(one: Standing, other: Standing): boolean {
  if (one.node === other.node) return true
  if (one.nodes.length > 0 || other.nodes.length > 0) return false
  const since = ({ node, incarnation }: Standing): string => incarnation.slice(node.length)
  return /up since/.test(one.incarnation) && since(one) === since(other)
}
