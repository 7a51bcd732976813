import { canonicalAddress } from '../../provider/address.js'
import { pause, type Clock } from '../../provider/clock.js'
import type { DrainableProvider, MemberRef, PresentReading } from '../../provider/contract.js'
import { DrainableError } from '../../provider/error.js'
import { formatRef, poolKey } from '../../provider/member-ref.js'
import { quote } from '../../provider/quote.js'
import { select } from '../../core/calls/watch.js'
import type { ServerState } from './ledger.js'

/** The address and the members of a server. */
export type ServerPlace = Pick<ServerState, 'address' | 'refs'>

/** How often it is asked again whether a pool has enough servers, in milliseconds. */
const MINIMUM_PAUSE = 1_000

/**
 * Counts how many *servers* a pool has left. The floor of each drain counts members, which is the same unless a pool
 * has one server several times (one member per port): this class checks such pools before a server begins.
 */
export class Spread {
  readonly #provider: DrainableProvider
  readonly #clock: Clock
  readonly #keepReady: number
  readonly #pools: ReadonlyMap<string, MemberRef>
  /** Those that were let go in their pools' turn, until they are back. */
  readonly #taken = new Set<ServerPlace>()
  #asking: Promise<unknown> = Promise.resolve()
  #refused: DrainableError | undefined

  private constructor(
    provider: DrainableProvider,
    clock: Clock,
    keepReady: number,
    pools: ReadonlyMap<string, MemberRef>,
  ) {
    this.#provider = provider
    this.#clock = clock
    this.#keepReady = keepReady
    this.#pools = pools
  }

  /** Finds the pools of the roll that have one server several times. */
  static of(
    provider: DrainableProvider,
    clock: Clock,
    keepReady: number,
    servers: readonly ServerPlace[],
  ): Spread {
    const pools = new Map<string, MemberRef>()
    for (const { address, refs } of servers) {
      const seen = new Set<string>()
      for (const ref of refs) {
        const key = poolKey(ref)
        if (address !== null && seen.has(key)) pools.set(key, ref)
        seen.add(key)
      }
    }
    return new Spread(provider, clock, keepReady, pools)
  }

  /** Why the next server may not begin yet. */
  get refused(): DrainableError | undefined {
    return this.#refused
  }

  /**
   * Takes one server after another.
   *
   * @param waits - whether one that has no place waits for it
   * @param limit - for how long, in milliseconds
   * @returns why it can't be taken
   */
  take(
    server: ServerPlace,
    waits: () => boolean,
    limit: number,
    signal: AbortSignal,
  ): Promise<DrainableError | undefined> {
    const asked = this.#asking.then(async () => {
      const until = this.#clock.now() + limit
      for (;;) {
        const refused = await this.ask(server, [...this.#taken], signal)
        if (refused === undefined) this.#taken.add(server)
        this.#refused = refused
        if (refused === undefined || !waits() || this.#clock.now() >= until) return refused
        await pause(this.#clock, MINIMUM_PAUSE, signal)
      }
    })
    this.#asking = asked.catch(() => undefined)
    return asked
  }

  /** It takes no place any more. */
  back(server: ServerPlace): void {
    this.#taken.delete(server)
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
