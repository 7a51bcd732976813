import type { AdminState } from 'drainable'
import { fakeClock, type FakeClock } from 'drainable/testing'
import { ControlPlane, FATES } from './world/control-plane.js'
import type { Chain } from './user/drain-call.js'
import { Disturbances } from './disturbances.js'
import { Figures } from './figures.js'
import { withHost } from './user/host.js'
import { Judge, type Fault } from './judge/judge.js'
import { ModelProvider } from './world/model-provider.js'
import { randomProduct, type Lie } from './world/product.js'
import { Random } from './random.js'
import { Samples } from './judge/samples.js'
import { Traffic } from './world/traffic.js'
import { Truth } from './world/truth.js'
import { User } from './user/user.js'
import { UserProcess } from './user/user-process.js'
import { WaitingList } from './user/waiting-list.js'

/** How one scenario went. */
export interface Story {
  readonly seed: number
  readonly faults: readonly Fault[]
  readonly figures: Figures
  /** There when it was asked for. */
  readonly lines: readonly string[]
}

/**
 * One scenario: the same for one seed, on every machine.
 *
 * @param disturbed - with other machines, states that contradict themselves for long and looks that fail for good; a seed
 * tells the same story without them as before there were any
 */
export async function play(
  seed: number,
  trace = false,
  lie?: Lie,
  disturbed = true,
): Promise<Story> {
  const scenario = new Scenario(seed, trace, lie, disturbed)
  return scenario.play()
}

/** 2025-01-01, when every scenario begins. */
const EPOCH = 1_735_689_600_000
/** Longest time everything that is still open may take once all is calm, in milliseconds. */
const CALM_LIMIT = 150_000

/** From this seed on names of members stop resolving for a while. */
export const NAMES_FROM = 300_000_000

/** From this seed on threads are late: work that leaves a queue is in no counter for a while. */
export const LATE_FROM = 400_000_000

class Scenario {
  readonly #seed: number
  readonly #random: Random
  readonly #clock: FakeClock = fakeClock(1_000)
  readonly #figures = new Figures()
  readonly #lines: string[] = []
  readonly #trace: boolean
  readonly #truth: Truth
  readonly #plane: ControlPlane
  readonly #traffic: Traffic
  readonly #samples: Samples
  readonly #judge: Judge
  readonly #waiting: WaitingList
  readonly #chains: Chain[] = []
  readonly #processes: UserProcess[] = []
  readonly #users: User[] = []
  #wallJump = 0
  readonly #disturbances: Disturbances | undefined
  readonly #names: Random | undefined

  constructor(seed: number, trace: boolean, lie: Lie | undefined, disturbed: boolean) {
    this.#seed = seed
    this.#trace = trace
    this.#random = new Random(seed)
    const random = this.#random
    const product = randomProduct(random.fork(), lie)
    const pools = new Map([['web', ['web1', 'web2', 'web3'].slice(0, random.int(2, 3))]])
    if (random.chance(0.15)) pools.set('api', ['api1', 'api2'])
    const tell = (text: string): void => {
      if (this.#trace)
        this.#lines.push(`${String(Math.round(this.#clock.now())).padStart(7)} ${text}`)
    }
    tell(JSON.stringify(product))
    this.#truth = new Truth(this.#clock, product, pools, random.fork(), this.#figures, tell)
    this.#plane = new ControlPlane(this.#truth, random.fork())
    this.#traffic = new Traffic(this.#truth, random.fork())
    this.#samples = new Samples(this.#truth, random.fork())
    this.#judge = new Judge(this.#truth, this.#samples)
    this.#truth.listener = this.#judge
    this.#waiting = new WaitingList(this.#judge)
    if (seed >= LATE_FROM || lie === 'mayHide')
      this.#truth.lateThreads = new Random(seed ^ 0x7a3c11)
    if (seed >= NAMES_FROM) this.#names = new Random(seed ^ 0x51ed27)
    if (disturbed) this.#disturbances = new Disturbances(seed, this.#plane, this.#samples)
  }

  async play(): Promise<Story> {
    const hostRandom = this.#random.fork()
    const leave = withHost({
      wall: () => EPOCH + Math.round(this.#clock.now()) + this.#wallJump,
      uptime: () => 5_000_000 + this.#clock.now(),
      random: () => hostRandom.next(),
    })
    const unhandled = (error: unknown): void =>
      this.#judge.fault('unhandled', `an unhandled rejection: ${String(error)}`)
    process.on('unhandledRejection', unhandled)
    try {
      this.#newUser()
      if (this.#random.chance(0.25)) this.#newUser()
      this.#disturbances?.begin(() => this.#newUser())
      this.#traffic.start()
      await this.#clock.advance(this.#random.int(0, 1_500))
      await this.#act()
      await this.#calmDown()
      await this.#undoWhatIsLeft()
      await this.#leaveNothing()
    } catch (error) {
      this.#judge.fault('model', `the model failed: ${(error as Error).stack ?? String(error)}`)
    } finally {
      leave()
      process.off('unhandledRejection', unhandled)
    }
    this.#figures.add('scenarios')
    return {
      seed: this.#seed,
      faults: this.#judge.faults,
      figures: this.#figures,
      lines: this.#lines,
    }
  }

  #newUser(): User {
    const process = new UserProcess(this.#processes.length + 1, this.#clock)
    const newProvider = (): ModelProvider =>
      new ModelProvider(`m${this.#seed}`, this.#plane, this.#samples, this.#judge, process)
    const count = this.#random.pick([1, 2])
    process.providers = Array.from({ length: count }, newProvider)
    const random = this.#random.fork()
    const user = new User(process, this.#judge, this.#waiting, random, this.#chains, newProvider)
    this.#processes.push(process)
    this.#users.push(user)
    this.#disturbances?.joins(user, () => this.#alive)
    return user
  }

  get #alive(): User[] {
    return this.#users.filter(({ process }) => process.alive)
  }

  /** Drains that no living call works on. */
  get #idleChains(): Chain[] {
    return this.#chains.filter(
      (chain) =>
        chain.saved !== undefined &&
        !chain.busy &&
        !this.#judge.calls.some((call) => call.live && call.chain === chain),
    )
  }

  // --- the script ---

  /** Some kinds of mishap are left out of each scenario, so that the others are seen alone too. */
  #swarm(): (readonly [() => void, number])[] {
    const random = this.#random
    const on = (weight: number, share = 0.5): number => (random.chance(share) ? weight : 0)
    const { truth, plane } = { truth: this.#truth, plane: this.#plane }
    const user = (): User => random.pick(this.#alive)
    const anyKey = (): string => random.pick([...truth.members.keys()])
    const withHeld = (act: (user: User, held: User['held'][number]) => void): void => {
      const busy = this.#alive.filter(({ held }) => held.length > 0)
      if (busy.length === 0) return
      const one = random.pick(busy)
      act(one, random.pick(one.held))
    }
    const withChain = (act: (chain: Chain) => void): void => {
      if (this.#idleChains.length > 0) act(random.pick(this.#idleChains))
    }
    return [
      [() => user().startDrain(), 4],
      [() => user().drainWithAction(), on(4)],
      [() => user().steps(), on(2, 0.4)],
      [() => user().watch(), on(1, 0.2)],
      [() => user().ready(), on(3)],
      [() => withHeld((one, held) => one.restoreHandle(held)), on(3)],
      [() => withHeld((one, held) => one.releaseUnlessAborting(held)), on(2)],
      [() => withHeld((one, held) => one.abort(held)), on(2)],
      [() => withChain((chain) => user().resume(chain)), on(3, 0.6)],
      [() => withChain((chain) => this.#resumeBlind(user(), chain)), on(1, 0.4)],
      [() => withChain((chain) => user().restoreTicket(chain)), on(2)],
      [() => withHeld((one, held) => this.#restoreThroughLosses(one, held)), on(1, 0.4)],
      [() => withChain((chain) => user().steps(chain)), on(1, 0.3)],
      [() => this.#crash(user()), on(2, 0.4)],
      [() => truth.operator(anyKey(), random.pick(STATES)), on(3)],
      [() => truth.reload('reload'), on(3)],
      [() => truth.reload('restart'), on(1, 0.3)],
      [() => truth.saveStateFile(), on(1)],
      [() => void plane.planned.push(random.pick(FATES)), on(3)],
      [() => this.#freeze(), on(1, 0.3)],
      [() => this.#failLooks(), on(1, 0.4)],
      [() => this.#unreadable(), on(1, 0.4)],
      [() => this.#sicken(anyKey()), on(1, 0.3)],
      [() => truth.replace(anyKey(), random.int(0, 2_000)), on(1, 0.2)],
      [() => this.#jump(), on(1, 0.15)],
    ]
  }

  async #act(): Promise<void> {
    const actions = this.#swarm()
    const pace = this.#random.pick([150, 600, 1_500])
    this.#loseAddress()
    this.#alive[0]?.startDrain()
    for (let i = this.#random.int(3, 14); i > 0; i -= 1) {
      await this.#clock.advance(this.#random.int(0, pace))
      this.#random.weighted(actions)?.()
      this.#disturbances?.strike()
      this.#loseAddress()
    }
    await this.#clock.advance(this.#random.int(0, 3_000))
  }

  #loseAddress(): void {
    if (this.#names?.chance(0.3) !== true) return
    this.#truth.loseAddress(
      this.#names.pick([...this.#truth.members.keys()]),
      this.#names.int(50, 8_000),
    )
  }

  /** Another process goes on while nothing can be read. */
  #resumeBlind(user: User, chain: Chain): void {
    for (const process of this.#truth.alive())
      process.unreadUntil = this.#clock.now() + this.#random.int(200, 2_500)
    user.resume(chain)
  }

  /** The steps of an undo get lost, one or several. */
  #restoreThroughLosses(user: User, held: User['held'][number]): void {
    for (let i = this.#random.int(1, 3); i > 0; i -= 1)
      this.#plane.planned.push(this.#random.pick(['done', ...FATES]))
    user.restoreHandle(held)
  }

  #crash(user: User): void {
    this.#truth.tell(`${user.process.name} is killed`)
    user.process.die()
    this.#judge.crashed(user.process)
    for (const chain of user.worksOn) chain.busy = false
    this.#newUser()
  }

  #freeze(): void {
    const ms = this.#random.int(100, 2_500)
    this.#truth.tell(`the control plane is frozen for ${ms} ms`)
    this.#figures.add('world: frozen')
    this.#plane.frozenUntil = this.#clock.now() + ms
  }

  #failLooks(): void {
    const ms = this.#random.int(1, 1_500)
    this.#truth.tell(`looks fail for ${ms} ms`)
    this.#plane.failingUntil = this.#clock.now() + ms
  }

  #unreadable(): void {
    const process = this.#random.pick(this.#truth.alive())
    const ms = this.#random.int(50, 3_000)
    this.#truth.tell(`${process.name} can't be read for ${ms} ms`)
    process.unreadUntil = this.#clock.now() + ms
  }

  #sicken(key: string): void {
    if (!this.#truth.product.checked) return
    this.#truth.setHealth(key, 'down')
    this.#clock.setTimeout(() => this.#truth.setHealth(key, 'up'), this.#random.int(200, 3_000))
  }

  #jump(): void {
    const ms = this.#random.int(-8_000, 8_000)
    this.#truth.tell(`the wall clock jumps by ${ms} ms`)
    this.#figures.add('world: wall clock jumps')
    this.#wallJump += ms
  }

  // --- the end ---

  /** Nothing goes wrong from here on: each user releases its members, in one way or another. */
  async #calmDown(): Promise<void> {
    this.#truth.tell('calm from here on')
    this.#plane.calm = true
    this.#plane.planned.length = 0
    this.#plane.frozenUntil = this.#clock.now()
    await this.#clock.advance(this.#random.int(0, 2_000))
    this.#traffic.stop()
    for (const member of this.#truth.members.values())
      if (member.health === 'down') this.#truth.setHealth(member.key, 'up')
    await this.#clock.advance(this.#random.int(0, 4_000))
    for (const user of this.#alive) {
      user.stopSteps()
      if (this.#random.chance(0.2)) {
        this.#crash(user)
        continue
      }
      for (const held of [...user.held]) {
        if (this.#random.chance(0.15)) user.abort(held)
        else if (this.#random.chance(0.65)) user.restoreHandle(held)
        else if (!user.waitsForAbort(held)) user.release(held)
      }
      for (const end of user.actions) end()
    }
    await this.#untilSettled()
    for (const user of this.#alive) for (const held of [...user.held]) user.release(held)
    await this.#untilSettled()
  }

  async #untilSettled(): Promise<void> {
    const until = this.#clock.now() + CALM_LIMIT
    await this.#clock.advance(0)
    while (this.#waiting.open().length > 0 && this.#clock.now() < until)
      await this.#clock.advance(100)
    for (const { what } of this.#waiting.open())
      this.#judge.fault('silent end', `${what} never settles`)
  }

  /** Every ticket that was left behind is enough to undo its drain. */
  async #undoWhatIsLeft(): Promise<void> {
    const late = this.#truth.product.capabilities.lateBound
    await this.#clock.advance(Math.max(late, 3_000) + 100)
    const user = this.#newUser()
    for (const chain of this.#idleChains) {
      if (this.#waiting.open().length > 0) return
      this.#figures.add('tickets left and undone')
      user.restoreTicket(chain, true)
      await this.#untilSettled()
    }
    await this.#clock.advance(late + 100)
  }

  async #leaveNothing(): Promise<void> {
    await this.#clock.advance(3_000)
    if (this.#waiting.open().length > 0) return
    for (const { process } of this.#alive) {
      const { pending } = process.clock
      if (pending > 0)
        this.#judge.fault('timers', `${process.name} has let go of all, ${pending} timers are left`)
      if (process.wishesLeft > 0)
        this.#judge.fault('wishes', `${process.name} has let go of all, wishes are left`)
    }
  }
}

const STATES: readonly AdminState[] = ['ready', 'ready', 'drain', 'maint']
