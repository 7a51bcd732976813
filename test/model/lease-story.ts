/**
 * A random story of contenders for one lease: machines that freeze or sleep, clocks that drift and jump, calls that are lost,
 * late, or carried out after they were given up. Whoever acts is compared with what the engine knows.
 */
import { natsLease, type Lease, type NatsEntryLike, type NatsKvLike } from 'drainable'
import { fakeClock, fakeLease, type FakeClock } from 'drainable/testing'
import type { Clock } from 'drainable/provider'
import { Leadership, type Term } from '../../src/fleet/lease/leadership.js'
import { Random } from './random.js'

const TTL = 15_000
/** Disturbances end there, in milliseconds. */
const TROUBLE = 180_000
/** After that, somebody leads. */
const CALM = 5 * TTL

/** A holder that the engine has let in. */
interface Granted {
  readonly holder: string
  readonly fence: number
  readonly at: number
}

/** What became of one story. */
export interface LeaseStory {
  readonly faults: readonly string[]
  readonly acts: number
  readonly terms: number
}

/** A machine: its clock runs at a speed of its own, and it can stand still. */
class Machine implements Clock {
  readonly #world: FakeClock
  readonly #speed: number
  readonly #from: number
  readonly #wallFrom: number
  /** Whether it sleeps where it stands still; if not, its wall clock is set now and then. Both at once hide that time has passed. */
  readonly #sleeps: boolean
  /** What has come while it stood still. */
  readonly #waiting: (() => void)[] = []
  #isStopped = false
  /** Since when its monotonic clock stands still too; undefined: it does not. */
  #asleepAt: number | undefined
  #slept = 0
  #jumped = 0

  constructor(world: FakeClock, random: Random) {
    this.#world = world
    this.#speed = 0.95 + random.next() / 10
    this.#from = random.int(0, 1_000_000)
    this.#sleeps = random.chance(0.5)
    this.#wallFrom = 1_700_000_000_000 + random.int(-3_600_000, 3_600_000)
  }

  now(): number {
    const stands = this.#asleepAt === undefined ? 0 : this.#world.now() - this.#asleepAt
    return this.#from + (this.#world.now() - this.#slept - stands) * this.#speed
  }

  wall(): number {
    return this.#wallFrom + this.#world.now() * this.#speed + this.#jumped
  }

  setTimeout(fn: () => void, ms: number): () => void {
    let isOff = false
    const cancel = this.#world.setTimeout(
      () => {
        this.take(() => {
          if (!isOff) fn()
        })
      },
      Math.ceil(ms / this.#speed),
    ) // never early, as a real timer
    return () => {
      isOff = true
      cancel()
    }
  }

  get isRunning(): boolean {
    return !this.#isStopped
  }

  /** What comes from outside waits while the machine stands still. */
  take(event: () => void): void {
    if (this.#isStopped) this.#waiting.push(event)
    else event()
  }

  stop(): void {
    this.#isStopped = true
    if (this.#sleeps) this.#asleepAt ??= this.#world.now()
  }

  goOn(): void {
    this.#isStopped = false
    if (this.#asleepAt !== undefined) this.#slept += this.#world.now() - this.#asleepAt
    this.#asleepAt = undefined
    for (const event of this.#waiting.splice(0)) event()
  }

  jump(ms: number): void {
    if (!this.#sleeps) this.#jumped += ms
  }
}

/** The network between a machine and the engine. */
class Network {
  isBad = true
  readonly #world: FakeClock
  readonly #random: Random

  constructor(world: FakeClock, random: Random) {
    this.#world = world
    this.#random = random
  }

  /** Carries one request there, and its answer back. A request that the caller gave up is carried out all the same. */
  call<T>(machine: Machine, run: () => Promise<T>): Promise<T> {
    const answer = Promise.withResolvers<T>()
    void this.#carry(machine, run, answer)
    return answer.promise
  }

  async #carry<T>(
    machine: Machine,
    run: () => Promise<T>,
    { resolve, reject }: PromiseWithResolvers<T>,
  ): Promise<void> {
    const random = this.#random
    const fate = this.isBad ? random.next() : 1
    await this.#travels()
    const lost = (): void => machine.take(() => reject(new Error('the connection was lost')))
    if (fate < 0.04) return // nothing is ever heard of it
    if (fate < 0.1) {
      lost()
      return
    }
    const outcome = await run().then(
      (value) => () => resolve(value),
      (thrown: unknown) => () => reject(thrown),
    )
    await this.#travels()
    if (fate < 0.14) return // carried out, and never answered
    if (fate < 0.2) lost()
    else machine.take(outcome)
  }

  #travels(): Promise<void> {
    const random = this.#random
    const isSlow = this.isBad && random.chance(0.1)
    const ms = isSlow ? random.int(500, 20_000) : random.int(1, 60)
    return new Promise((resolve) => void this.#world.setTimeout(resolve, ms))
  }
}

/** What an engine has let in, and the lease as each machine gets it. */
interface Engine {
  readonly granted: Granted[]
  leaseOf(machine: Machine): Lease
}

/** An engine that ends a lease by its own clock, as Redis does. */
function expiring(world: FakeClock, network: Network): Engine {
  const truth = fakeLease({ clock: world })
  const granted: Granted[] = []
  const context = { clock: world, signal: new AbortController().signal }
  const leaseOf = (machine: Machine): Lease => ({
    name: truth.name,
    acquire: (holder, ttl) =>
      network.call(machine, async () => {
        const answer = await truth.acquire(holder, ttl, context)
        if (answer.granted && granted.at(-1)?.fence !== answer.fence)
          granted.push({ holder, fence: answer.fence, at: world.now() })
        return answer
      }),
    renew: (grant, ttl) => network.call(machine, () => truth.renew(grant, ttl, context)),
    release: (grant) => network.call(machine, () => truth.release(grant, context)),
  })
  return { granted, leaseOf }
}

/** An engine that compares and sets, as a NATS bucket does: contenders time the lease themselves. */
function comparing(world: FakeClock, network: Network): Engine {
  const granted: Granted[] = []
  let revision = 0
  let entry: { readonly revision: number; readonly data: string } | undefined
  const write = async (data: string, expected: number | undefined): Promise<number> => {
    if (entry?.revision !== expected) throw new Error('wrong last sequence')
    revision += 1
    entry = { revision, data }
    const { holder, fence } = JSON.parse(data) as { holder: string | null; fence?: number }
    if (holder !== null && fence === undefined)
      granted.push({ holder, fence: revision, at: world.now() })
    return revision
  }
  const read = async (): Promise<NatsEntryLike | null> => {
    const found = entry
    if (found === undefined) return null
    return { operation: 'PUT', revision: found.revision, string: () => found.data }
  }
  const leaseOf = (machine: Machine): Lease => {
    const bucket: NatsKvLike = {
      get: () => network.call(machine, read),
      create: (_, data) => network.call(machine, () => write(data, undefined)),
      update: (_, data, expected) => network.call(machine, () => write(data, expected)),
    }
    return natsLease(bucket, { key: 'edge' })
  }
  return { granted, leaseOf }
}

/** One process that wants to lead, and acts while it does. */
class Contender {
  readonly machine: Machine
  readonly #lease: Lease
  #leadership: Leadership
  readonly #act: (fence: number, holder: string) => void
  readonly #signal = new AbortController().signal
  term: Term | undefined
  terms = 0
  wants = true

  constructor(machine: Machine, lease: Lease, act: (fence: number, holder: string) => void) {
    this.machine = machine
    this.#act = act
    this.#lease = lease
    this.#leadership = this.#asAnother()
    void this.#contend()
  }

  /** Whether it would change something now. */
  get leads(): boolean {
    return this.machine.isRunning && this.term !== undefined && this.term.permit() === undefined
  }

  /** It acts if it may. */
  tryToAct(): void {
    if (this.leads && this.term !== undefined)
      this.#act(this.term.grant.fence, this.#leadership.holder)
  }

  async #contend(): Promise<void> {
    for (;;) {
      await this.#pause(this.#leadership.retry)
      const { term } = this
      if (term !== undefined && !this.wants) {
        this.term = undefined
        await term.release()
        this.#leadership = this.#asAnother()
      }
      if (this.term?.signal.aborted === true) this.term = undefined
      if (this.term !== undefined || !this.wants) continue
      const got = await this.#leadership.acquire(this.#signal).catch(() => undefined)
      if (got === undefined || !('grant' in got)) continue
      this.term = got
      this.terms += 1
      this.tryToAct()
    }
  }

  /** A call that has given the lease up is over: the next one contends by another name. */
  #asAnother(): Leadership {
    const { machine } = this
    return new Leadership({ lease: this.#lease, ttl: TTL, clock: machine, subject: 'story()' })
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => void this.machine.setTimeout(resolve, ms))
  }
}

/** Plays one story. */
export async function playLease(seed: number): Promise<LeaseStory> {
  const random = new Random(seed)
  const world = fakeClock()
  const network = new Network(world, random.fork())
  const engine = random.chance(0.5) ? expiring(world, network) : comparing(world, network)
  const faults: string[] = []
  let acts = 0
  const act = (fence: number, holder: string): void => {
    acts += 1
    const newest = engine.granted.at(-1)
    if (newest === undefined || newest.fence === fence) return
    const words = `${holder} acts with ${fence}, but ${newest.holder} got ${newest.fence} at ${newest.at}`
    faults.push(`at ${world.now()}: ${words}`)
  }
  const contenders = Array.from({ length: random.int(2, 4) }, () => {
    const machine = new Machine(world, random.fork())
    return new Contender(machine, engine.leaseOf(machine), act)
  })
  while (world.now() < TROUBLE) {
    await world.advance(random.int(20, 1_500))
    disturb(random.pick(contenders), random)
    for (const one of contenders) one.tryToAct()
  }
  network.isBad = false
  for (const { machine } of contenders) machine.goOn()
  for (const one of contenders) one.wants = true
  await world.advance(CALM)
  const leaders = contenders.filter(({ leads }) => leads).length
  if (leaders !== 1) faults.push(`${leaders} lead after ${CALM} calm milliseconds`)
  for (const [i, one] of engine.granted.entries())
    if (one.fence <= (engine.granted[i - 1]?.fence ?? 0))
      faults.push(`${one.fence} was given after ${engine.granted[i - 1]?.fence ?? 0}`)
  const terms = contenders.reduce((sum, one) => sum + one.terms, 0)
  return { faults, acts, terms }
}

function disturb(one: Contender, random: Random): void {
  const { machine } = one
  const what = random.next()
  if (what < 0.08) machine.stop()
  else if (what < 0.2) machine.goOn()
  else if (what < 0.23) machine.jump(random.int(-30_000, 30_000))
  else if (what < 0.26) one.wants = !one.wants
}
