import { canonicalAddress } from '../../provider/address.js'
import type { Clock } from '../../provider/clock.js'
import type { DrainableProvider, MemberRef, PresentReading } from '../../provider/contract.js'
import { DrainableError } from '../../provider/error.js'
import { formatRef, poolKey } from '../../provider/member-ref.js'
import { quote } from '../../provider/quote.js'
import { select } from '../../core/calls/watch.js'
import type { ServerState } from './ledger.js'

/** The address and the members of a server. */
export type ServerPlace = Pick<ServerState, 'address' | 'refs'>

/**
 * Counts how many *servers* a pool has left. The floor of each drain counts members, which is the same unless a pool
 * has one server several times (one member per port): this class checks such pools before a server begins.
 */
export class Spread {
  readonly #provider: DrainableProvider
  readonly #clock: Clock
  readonly #keepReady: number
  /** The pools of the roll that have one server several times. */
  readonly #pools: ReadonlySet<string>

  constructor(
    provider: DrainableProvider,
    clock: Clock,
    keepReady: number,
    servers: readonly ServerPlace[],
  ) {
    this.#provider = provider
    this.#clock = clock
    this.#keepReady = keepReady
    const pools = servers.flatMap(({ address, refs }) => {
      const own = address === null ? [] : refs.map(poolKey)
      return own.filter((key, n) => own.indexOf(key) < n)
    })
    this.#pools = new Set(pools)
  }

  /** Returns why a server can't be taken; undefined if enough others serve in each of its pools. */
  async ask(
    server: ServerPlace,
    others: readonly ServerPlace[],
    signal: AbortSignal,
  ): Promise<DrainableError | undefined> {
    const own = new Map(server.refs.map((ref) => [poolKey(ref), ref]))
    const pools = [...own].filter(([key]) => this.#pools.has(key))
    if (this.#keepReady === 0 || pools.length === 0) return undefined
    const out = new Set([server, ...others].flatMap(({ address }) => nameOf(address ?? undefined)))
    for (const [, ref] of pools) {
      const { pool, balancer } = ref
      const target = { pool, ...(balancer === undefined ? {} : { balancer }) }
      const readings = await select(this.#provider, target, { clock: this.#clock, signal })
      const serving = readings.filter((one): one is PresentReading => one.present && one.serves)
      const left = new Set(serving.flatMap(({ address }) => nameOf(address)))
      for (const name of out) left.delete(name)
      if (left.size < this.#keepReady) return this.#refusal(ref, server, left.size)
    }
    return undefined
  }

  #refusal(ref: MemberRef, { address }: ServerPlace, left: number): DrainableError {
    return new DrainableError(
      'POOL_AT_MINIMUM',
      `${formatRef(ref)} was not drained: without ${quote(address ?? '')} ${left} ${left === 1 ? 'server' : 'servers'} of ${quote(ref.pool)} would be left serving, keepReady is ${this.#keepReady}; bring another server up, lower keepReady, or take its members one by one with group: 'ref'`,
      { ref },
    )
  }
}

function nameOf(address: string | undefined): readonly string[] {
  return address === undefined ? [] : [canonicalAddress(address)]
}
