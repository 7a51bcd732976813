import type { AdminState, LoadScope, Reading, Snapshot } from 'drainable'
import type { BalancerProcess, Fact } from '../world/balancer-process.js'
import { keyOf, type Member } from '../world/member.js'
import type { Truth } from '../world/truth.js'
import type { MemberRef } from 'drainable'
import type { Random } from '../random.js'

/** What one process counted at a moment. The numbers go out; the facts stay with the judge. */
interface Sample {
  readonly sampledAt: number
  readonly at: number
  readonly incarnation: string
  readonly counts: ReadonlyMap<string, { active: number; queued: number; arrivals: number }>
  /** Whether work that has left the queue can be in no count: this look did not list it. */
  readonly mayHide: boolean
  readonly facts: ReadonlyMap<string, Fact>
}

/** What the contract is to say from the new core on; today's ignores it. */
export interface ScopeAdditions {
  readonly admin: AdminState | 'unknown'
  readonly open: boolean
}

/** A bit less each time, so that a sample is found again by its moment. */
const TICK = 1e-9

/** Reads the truth the way a provider of this product does: honest, but stale, partial or blind at times. */
export class Samples {
  readonly #truth: Truth
  readonly #random: Random
  readonly #facts = new Map<string, Sample>()
  readonly #cache = new Map<BalancerProcess, Sample>()
  #count = 0

  constructor(truth: Truth, random: Random) {
    this.#truth = truth
    this.#random = random
  }

  /** Until when the balancer contradicts itself about the state of a member, by the member's key. */
  readonly contradictsUntil = new Map<string, number>()

  #contradictsForLong(ref: MemberRef): boolean {
    const { clock, figures } = this.#truth
    const isSo = (this.contradictsUntil.get(keyOf(ref)) ?? -Infinity) > clock.now()
    if (isSo) figures.add('readings that contradict themselves for long')
    return isSo
  }

  /** What a process truly held when it was sampled. */
  factOf(scope: string, sampledAt: number, key: string): Fact | undefined {
    return this.#facts.get(`${scope}@${sampledAt}`)?.facts.get(key)
  }

  /**
   * One look.
   *
   * @param mayHide - whether a process may be left out of the list without a word
   */
  look(
    refs: readonly MemberRef[] | 'all',
    calm: boolean,
    mayHide: (process: BalancerProcess) => boolean,
  ): Snapshot {
    const truth = this.#truth
    const { failing, ends } = truth.product
    const samples = new Map(truth.alive().map((process) => [process, this.#sample(process)]))
    const unlisted = new Set<BalancerProcess>()
    const unread = new Set<BalancerProcess>()
    for (const process of truth.alive()) {
      const unreadable = !calm && this.#random.chance(failing.unread)
      if (unreadable || (!calm && process.unreadUntil > truth.clock.now())) unread.add(process)
      if (!calm && ends !== 'unlisted' && this.#random.chance(failing.unlisted) && mayHide(process))
        unlisted.add(process)
    }
    // a member that is there is never listed without a process
    if (unlisted.size === samples.size) unlisted.clear()
    if (unread.size > 0) truth.figures.add('looks with an unread process')
    if (unlisted.size > 0) truth.figures.add('looks with an unlisted process')
    const asked =
      refs === 'all'
        ? [...truth.members.values()].filter(({ present }) => present).map(({ ref }) => ref)
        : refs
    const readings = asked.map((ref) => {
      const byChance = !calm && this.#random.chance(failing.contradicts)
      const contradicts = byChance || (!calm && this.#contradictsForLong(ref))
      return this.#read(ref, samples, unread, unlisted, contradicts)
    })
    const pools = new Set(refs === 'all' ? truth.pools.keys() : refs.map(({ pool }) => pool))
    const ended = truth.processes.filter(({ alive }) => !alive).map(({ name }) => name)
    return {
      readings,
      pools: [...pools].flatMap((pool) => this.#pool(pool)),
      ...(ends === 'names' ? { ended } : ends === 'unlisted' ? { ended: 'unlisted' } : {}),
    }
  }

  #pool(pool: string): Snapshot['pools'] {
    const members = this.#truth.inPool(pool).filter(({ present }) => present)
    const serving = members.filter((member) => this.#truth.serves(member)).length
    return [{ pool, serving, total: members.length, whenNone: 'refuse' }]
  }

  #read(
    ref: MemberRef,
    samples: ReadonlyMap<BalancerProcess, Sample>,
    unread: ReadonlySet<BalancerProcess>,
    unlisted: ReadonlySet<BalancerProcess>,
    contradicts: boolean,
  ): Reading {
    const truth = this.#truth
    const member = truth.members.get(keyOf(ref))
    const scopes: LoadScope[] = []
    for (const [process, sample] of samples) {
      if (!unlisted.has(process))
        scopes.push(this.#scope(process, sample, member, keyOf(ref), unread.has(process)))
    }
    if (truth.product.ends === 'listed') {
      for (const process of truth.processes.filter(({ alive }) => !alive).slice(-6))
        scopes.push(endedScope(process, truth.clock.now()))
    }
    if (member?.present !== true) {
      const counted = member !== undefined && truth.product.capabilities.countsAfterRemove
      return { ref, present: false, scopes: counted ? scopes : [] }
    }
    return {
      ref,
      present: true,
      ...((member.namelessUntil ?? 0) > truth.clock.now()
        ? { identity: '' }
        : { identity: member.identity, address: member.address, port: 80 }),
      own: contradicts ? 'unknown' : member.own,
      serves: truth.serves(member),
      health: member.health,
      scopes,
    }
  }

  #scope(
    process: BalancerProcess,
    sample: Sample,
    member: Member | undefined,
    key: string,
    unread: boolean,
  ): LoadScope & ScopeAdditions {
    const old = process.role === 'old'
    const admin = process.stateOf(key)
    const own = member?.own ?? 'ready'
    const { lie } = this.#truth.product
    const counts = sample.counts.get(key) ?? { active: 0, queued: 0, arrivals: 0 }
    return {
      scope: process.name,
      incarnation: sample.incarnation,
      state: unread ? 'unread' : 'read',
      sampledAt: sample.sampledAt,
      active: unread || lie === 'active' ? 0 : counts.active,
      queued: unread ? 0 : counts.queued,
      ...(sample.mayHide && lie !== 'mayHide' ? { mayHide: true } : {}),
      ...(this.#truth.product.countsArrivals
        ? { arrivals: unread || lie === 'arrivals' ? 0 : counts.arrivals }
        : {}),
      admin: unread ? 'unknown' : lie === 'holds' ? own : admin,
      open: !old || process.attached > 0,
      ...(old ? { old: true } : {}),
    }
  }

  #sample(process: BalancerProcess): Sample {
    const { clock, product, members } = this.#truth
    const now = clock.now()
    const known = this.#cache.get(process)
    const { freshness } = product.capabilities
    if (
      known !== undefined &&
      known.incarnation === process.incarnation &&
      now - known.at < freshness
    )
      return known
    this.#count += 1
    const sampledAt = now - this.#count * TICK
    const keys = [...members.keys()]
    // Some looks list what others can't see.
    const { lateThreads } = this.#truth
    const mayHide = lateThreads?.chance(0.7) === true
    const sample: Sample = {
      sampledAt,
      at: now,
      incarnation: process.incarnation,
      mayHide,
      counts: new Map(
        keys.map((key) => [
          key,
          {
            active: process.count(key, 'active'),
            queued: process.count(key, 'queued') + (mayHide ? 0 : process.count(key, 'slot')),
            arrivals: process.arrivals.get(key) ?? 0,
          },
        ]),
      ),
      facts: new Map(keys.map((key) => [key, process.fact(key)])),
    }
    this.#cache.set(process, sample)
    this.#facts.set(`${process.name}@${sampledAt}`, sample)
    return sample
  }
}

function endedScope(process: BalancerProcess, now: number): LoadScope {
  const { name: scope, incarnation } = process
  return {
    scope,
    incarnation,
    state: 'ended',
    sampledAt: now,
    active: 0,
    queued: 0,
    old: true,
  }
}
