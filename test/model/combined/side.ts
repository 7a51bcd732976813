import type { AdminState, Capabilities, Change, MemberRef } from 'drainable'
import type { FakeClock } from 'drainable/testing'
import { Figures } from '../figures.js'
import { Judge } from '../judge/judge.js'
import { Samples } from '../judge/samples.js'
import type { SentChange } from '../judge/sent-change.js'
import { Random } from '../random.js'
import type { UserProcess } from '../user/user-process.js'
import { ControlPlane } from '../world/control-plane.js'
import { keyOf, type Member, type TruthListener } from '../world/member.js'
import { ModelProvider } from '../world/model-provider.js'
import type { Product } from '../world/product.js'
import { Traffic } from '../world/traffic.js'
import { Truth } from '../world/truth.js'

/** What a balancer of a story is like: the first of each is the plainest. */
export interface SideTold {
  readonly seed: number
  readonly maint: Capabilities['maint']
  readonly countsArrivals: boolean
  readonly freshness: number
  readonly blind: number
  readonly lateBound: number
  readonly latency: number
  readonly minInterval: number
  readonly takes: number
  readonly units: boolean
  readonly afterReload: Product['afterReload']
  readonly checked: boolean
  readonly removes: boolean
  readonly rough: boolean
  readonly busy: boolean
}

/** A time in which a member held work. */
interface Busy {
  readonly from: number
  to: number
}

/** What an operator wished last of a member, until a reload forgets it. */
export interface Wish {
  readonly to: AdminState
  readonly at: number
}

/** What one of the balancers is asked by the library, as the judge of the story needs it. */
export interface Sent {
  readonly side: Side
  readonly member: Member
  readonly change: Change
  readonly process: UserProcess
  readonly sentAt: number
  /** Whether a `ready()` of that process may have sent it. */
  readonly byReady: boolean
}

/** Told of what a balancer carries out. */
export interface SideListener {
  fault(rule: string, text: string): void
  isOpening(side: Side, process: UserProcess, key: string): boolean
  executes(sent: Sent): void
}

function productOf(told: SideTold): Product {
  const { maint, lateBound, rough, removes } = told
  const share = (most: number): number => (rough ? most : 0)
  return {
    capabilities: {
      ladder: maint === 'none' ? ['ready', 'drain'] : ['ready', 'drain', 'maint'],
      maint,
      terminate: true,
      remove: removes,
      removal: 'refuses',
      add: false,
      counts: 'requests',
      freshness: told.freshness,
      blind: told.countsArrivals ? told.blind : 0,
      lateBound,
      survivesReload: told.afterReload === 'state-file',
      countsAfterRemove: true,
      minInterval: told.minInterval,
    },
    topology: told.units ? 'units' : 'workers',
    ends: 'listed',
    countsArrivals: told.countsArrivals,
    afterReload: told.afterReload,
    latency: told.latency,
    takes: told.takes,
    checked: told.checked,
    lie: undefined,
    // A process is left out of a list only where every call has been shown it: here that is not known.
    failing: {
      observe: share(0.05),
      apply: share(0.3),
      unread: share(0.05),
      unlisted: 0,
      contradicts: 0,
    },
  }
}

/** The judge of one balancer judges no call here: it only hands on what is sent. */
class Notes extends Judge {
  #own: Side | undefined
  #listener: SideListener | undefined
  #count = 0

  handTo(side: Side, listener: SideListener): void {
    this.#own = side
    this.#listener = listener
  }

  override sends(process: UserProcess, provider: ModelProvider, change: Change): SentChange {
    const key = keyOf(change.ref)
    const own = this.#own
    const byReady = own !== undefined && this.#listener?.isOpening(own, process, key) === true
    this.#count += 1
    const to = 'to' in change ? ` to ${change.to}` : ''
    this.truth.tell(`${own?.key}: ${process.name} sends #${this.#count} ${change.kind} ${key}${to}`)
    return {
      number: this.#count,
      key,
      change,
      process,
      provider,
      sentAt: this.now,
      knownUntil: -Infinity,
      authors: new Set(),
      candidates: [],
      byReady,
      answer: 'open',
      answeredAt: Infinity,
      executedAt: Infinity,
      effect: undefined,
      alike: false,
    }
  }

  override refused(): void {
    // nobody is judged by it
  }
}

/** One of the balancers, with its truth. */
export class Side implements TruthListener {
  readonly key: string
  readonly truth: Truth
  readonly plane: ControlPlane
  readonly wishes = new Map<string, Wish>()
  /** When its processes were last replaced. */
  reloadedAt = -Infinity
  readonly #traffic: Traffic
  readonly #samples: Samples
  readonly #notes: Notes
  readonly #busy = new Map<string, Busy[]>()
  readonly #instance: string
  readonly #isBusy: boolean
  readonly #listener: SideListener

  constructor(
    key: string,
    told: SideTold,
    pools: ReadonlyMap<string, readonly string[]>,
    clock: FakeClock,
    tell: (text: string) => void,
    listener: SideListener,
  ) {
    const random = new Random(told.seed)
    this.key = key
    this.#instance = `balancer ${key}`
    this.#isBusy = told.busy
    this.#listener = listener
    const figures = new Figures()
    this.truth = new Truth(clock, productOf(told), pools, random.fork(), figures, (text) =>
      tell(`${key}: ${text}`),
    )
    this.plane = new ControlPlane(this.truth, random.fork())
    this.#traffic = new Traffic(this.truth, random.fork())
    this.#samples = new Samples(this.truth, random.fork())
    this.#notes = new Notes(this.truth, this.#samples)
    this.#notes.handTo(this, listener)
    this.truth.listener = this
  }

  get now(): number {
    return this.truth.clock.now()
  }

  providerOf(process: UserProcess): ModelProvider {
    return new ModelProvider(this.#instance, this.plane, this.#samples, this.#notes, process)
  }

  start(): void {
    if (this.#isBusy) this.#traffic.start()
  }

  /** Nothing goes wrong from here on. */
  calm(): void {
    this.#traffic.stop()
    this.plane.calm = true
    this.plane.planned.length = 0
    this.plane.frozenUntil = this.now
    for (const member of this.truth.members.values())
      if (member.health === 'down') this.truth.setHealth(member.key, 'up')
  }

  work(key: string, ms: number): void {
    const [process] = this.truth.current()
    if (process !== undefined && this.truth.admits(process, key, true)) {
      this.truth.tell(`work of ${ms} ms comes to ${key}`)
      this.truth.begin(process, key, 'active', ms)
    }
  }

  operator(key: string, to: AdminState): void {
    const member = this.truth.member(key)
    if (!member.present || member.own === to) return
    this.truth.operator(key, to)
    this.wishes.set(key, { to, at: this.now })
  }

  reload(how: 'reload' | 'restart'): void {
    this.truth.reload(how)
    this.reloadedAt = this.now
    // A worker that begins anew has the states of a file, or none: whose they are is not told.
    if (this.truth.product.topology === 'workers') this.wishes.clear()
  }

  // --- what is true

  /** Whether a member is out, and the library has made it so: an undo may lead back to what an operator had set. */
  isOurs(ref: MemberRef): boolean {
    const { present, own, setter, sets } = this.truth.member(keyOf(ref))
    const isBack =
      setter.change?.change.kind === 'restore' &&
      sets.some((one) => one.to === own && one.setter.by === 'operator')
    return present && own !== 'ready' && setter.by === 'library' && !isBack
  }

  /** What a process truly held when it was sampled. */
  factOf(scope: string, sampledAt: number, key: string): ReturnType<Samples['factOf']> {
    return this.#samples.factOf(scope, sampledAt, key)
  }

  /** When the last work of a member was over that began before a moment; -Infinity if it had none. */
  busyUntil(key: string, moment: number): number {
    const before = (this.#busy.get(key) ?? []).findLast(({ from }) => from < moment)
    return before === undefined ? -Infinity : Math.min(before.to, moment)
  }

  // --- what its truth tells

  arrived(key: string): void {
    const all = this.#busy.get(key) ?? []
    this.#busy.set(key, all)
    if (all.at(-1)?.to !== Infinity) all.push({ from: this.now, to: Infinity })
  }

  left(key: string): void {
    const last = this.#busy.get(key)?.at(-1)
    if (last?.to === Infinity && this.truth.load(key) === 0) last.to = this.now
  }

  executes({ change, process, sentAt, byReady }: SentChange, member: Member | undefined): void {
    if (member === undefined) return
    this.#listener.executes({ side: this, member, change, process, sentAt, byReady })
    if (byReady && change.kind === 'restore') this.wishes.delete(member.key)
  }

  executed(
    { number }: SentChange,
    member: Member | undefined,
    { status }: { readonly status: string },
  ): void {
    this.truth.tell(`#${number} is carried out: ${status} -> ${member?.own ?? 'none'}`)
  }

  interfered(): void {
    // the wishes of operators are noted where they are made
  }
}
