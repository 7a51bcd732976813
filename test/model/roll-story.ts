import fc from 'fast-check'
import {
  combineProviders,
  resumeRoll,
  startRoll,
  type DrainableProvider,
  type Lease,
  type Roll,
  type RollEvent,
  type RollOptions,
  type ServerDrained,
  type Ticket,
  type TicketStore,
} from 'drainable'
import {
  fakeClock,
  fakeLease,
  fakeProvider,
  type FakeClock,
  type FakeLease,
  type FakeProvider,
} from 'drainable/testing'
import { jsonStore } from '../unit/combined/set-up.js'
import { withHost } from './user/host.js'
import { UserProcess } from './user/user-process.js'

/** How many servers there are, each a member on two balancers. */
const SIZE = 5
const names = Array.from({ length: SIZE }, (_, n) => `web${n + 1}`)

/** One thing that happens while a roll goes on. */
const step = fc.record({
  kind: fc.constantFrom(
    'occupy',
    'free',
    'reload',
    'away',
    'crash',
    'drained',
    'arrive',
    'lease lost',
    'close',
  ),
  server: fc.nat(SIZE - 1),
  side: fc.nat(1),
  after: fc.integer({ min: 1, max: 4_000 }),
})

/** How a roll is to go, and what happens meanwhile. */
export const rollStory = fc.record({
  steps: fc.array(step, { maxLength: 10 }),
  maxUnavailable: fc.integer({ min: 1, max: 3 }),
  keepReady: fc.integer({ min: 1, max: 4 }),
  canary: fc.nat(2),
  onTimeout: fc.constantFrom('postpone', 'fail'),
  onFailure: fc.constantFrom('stop', 'continue'),
  onAbort: fc.constantFrom('leave', 'restore'),
  failing: fc.array(fc.nat(SIZE - 1), { maxLength: 2 }),
  work: fc.integer({ min: 0, max: 3_000 }),
  leased: fc.boolean(),
})

type Story = typeof rollStory extends fc.Arbitrary<infer T> ? T : never
type Step = Story['steps'][number]

/** The story of a seed. */
export function storyOf(seed: number): Story {
  const [story] = fc.sample(rollStory, { seed, numRuns: 1 })
  if (story === undefined) throw new Error('no story')
  return story
}

/** What a process that was killed asked for is not done, and what it asked before is not answered. */
function forProcess<T>(mine: UserProcess, call: () => Promise<T>): Promise<T> {
  const never = new Promise<never>(() => undefined)
  return mine.alive ? call().then((answer) => (mine.alive ? answer : never)) : never
}

/** The same balancer as one process sees it. `seen`: told of the members of each look that came through. */
function balancerOf(
  lb: FakeProvider,
  mine: UserProcess,
  seen: (members: readonly string[]) => void,
): DrainableProvider {
  return {
    specVersion: 1,
    name: lb.name,
    instance: lb.instance,
    describe: (ctx) => forProcess(mine, () => lb.describe(ctx)),
    observe: (refs, ctx) =>
      forProcess(mine, async () => {
        const snapshot = await lb.observe(refs, ctx)
        seen(snapshot.readings.map(({ ref }) => ref.member))
        return snapshot
      }),
    apply: (changes, ctx) => forProcess(mine, () => lb.apply(changes, ctx)),
    close: () => Promise.resolve(),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
}

function storeOf(store: TicketStore, mine: UserProcess): TicketStore {
  return {
    get: (key) => forProcess(mine, () => store.get(key)),
    set: (key, value) => forProcess(mine, () => store.set(key, value)),
    delete: (key) => forProcess(mine, () => store.delete(key)),
    keys: () => [],
  }
}

function leaseOf(lease: FakeLease, mine: UserProcess): Lease {
  return {
    name: lease.name,
    acquire: (...args) => forProcess(mine, () => lease.acquire(...args)),
    renew: (...args) => forProcess(mine, () => lease.renew(...args)),
    release: (...args) => forProcess(mine, () => lease.release(...args)),
  }
}

/** How often a roll is resumed at most before it must be done. */
const RESUMES = 6
/** Two balancers are looked at one after the other: so long before it is acted on, a server is seen at most, in milliseconds. */
const LOOKS_APART = 100

/** A look at one server on one balancer. */
interface Seen {
  readonly at: number
  /** Whether it was out, and held no work, on both balancers in that moment. */
  readonly idle: boolean
}

/**
 * A roll over two balancers with a truth of their own, told as a story of what happens to it. Nothing may be acted on
 * that holds work or is open; the floor, `maxUnavailable` and the canaries hold by our doing; every roll ends, and
 * resumed after each crash it leaves all servers as they were before.
 */
class RollPlay {
  /** What must never be. */
  readonly faults: string[] = []
  readonly #told: Story
  readonly #clock: FakeClock = fakeClock(1_000, Date.UTC(2026, 0, 1))
  readonly #sides: readonly [FakeProvider, FakeProvider]
  readonly #tickets = jsonStore()
  readonly #lease: FakeLease
  /** Servers that another client has taken out, with their side. */
  readonly #theirs = new Set<string>()
  /** Those of them that a reload has opened. */
  readonly #forgotten = new Set<string>()
  readonly #open: (() => void)[] = []
  readonly #attempts = new Map<string, number>()
  /** Servers that are through, and those that failed and were left. */
  readonly #done = new Set<string>()
  readonly #failed = new Set<string>()
  readonly #acting = new Set<string>()
  /** The newest look at each server, by side. */
  readonly #seen: readonly [Map<string, Seen>, Map<string, Seen>] = [new Map(), new Map()]
  /** The process that rolls; another one after each crash. */
  #process: UserProcess
  #processes = 1
  #run: Roll | undefined

  constructor(told: Story) {
    this.#told = told
    const clock = this.#clock
    const pools = { web: names }
    this.#sides = [
      fakeProvider({ pools, clock, instance: 'a', capabilities: { blind: 200, minInterval: 40 } }),
      fakeProvider({ pools, clock, instance: 'b' }),
    ]
    this.#lease = fakeLease({ clock })
    this.#process = new UserProcess(1, clock)
  }

  get clock(): FakeClock {
    return this.#clock
  }

  async play(): Promise<void> {
    this.#begin()
    for (const one of this.#told.steps) {
      await this.#clock.advance(one.after)
      this.#count()
      await this.#happen(one)
    }
    for (const end of this.#open) end()
    for (let tries = 0; tries < RESUMES && this.#run !== undefined; tries += 1) {
      const report = await this.#clock.runUntil(this.#run.done)
      this.#count()
      if (report.outcome === 'done') {
        this.#asBefore()
        return
      }
      await this.#resume()
    }
    if (this.#run !== undefined) this.faults.push(`not done after ${RESUMES} resumes`)
  }

  // --- the roll

  #options(): Pick<RollOptions, 'act' | 'clock' | 'tickets' | 'onEvent' | 'lease'> {
    const mine = this.#process
    return {
      act: (server) => this.#act(server, mine),
      clock: mine.clock,
      tickets: storeOf(this.#tickets, mine),
      onEvent: (event) => {
        if (mine.alive) this.#hear(event)
      },
      ...(this.#told.leased ? { lease: leaseOf(this.#lease, mine) } : {}),
    }
  }

  #all(): ReturnType<typeof combineProviders> {
    const [one, two] = this.#sides
    const [seenOne, seenTwo] = this.#seen
    const a = balancerOf(one, this.#process, (members) => this.#see(members, seenOne))
    const b = balancerOf(two, this.#process, (members) => this.#see(members, seenTwo))
    return combineProviders({ a, b })
  }

  #begin(): void {
    const { maxUnavailable, keepReady, canary, onTimeout, onFailure, onAbort } = this.#told
    const target = ['a', 'b'].map((balancer) => ({ pool: 'web', balancer }))
    const policy = { maxUnavailable, keepReady, canary, onTimeout, onFailure, onAbort }
    const own = { id: 'job', timeout: '10s', waitHealthy: '2m', onUnreachable: 'wait' } as const
    this.#run = this.#process.run(() =>
      startRoll(this.#all(), target, { ...policy, ...own, ...this.#options() }),
    )
  }

  async #resume(): Promise<void> {
    const ticket = (await this.#tickets.get('job')) as Ticket | undefined
    this.#acting.clear()
    this.#run =
      ticket === undefined
        ? undefined
        : this.#process.run(() => resumeRoll(this.#all(), ticket, this.#options()))
  }

  async #act({ refs, attempt }: ServerDrained, mine: UserProcess): Promise<void> {
    const [{ member } = { member: '' }] = refs
    this.#judgeAct(member, attempt)
    this.#acting.add(member)
    await new Promise<void>((resolve) => void mine.clock.setTimeout(resolve, this.#told.work))
    this.#acting.delete(member)
    if (attempt === 1 && this.#told.failing.includes(names.indexOf(member)))
      throw new Error('exit 1')
  }

  #hear(event: RollEvent): void {
    if (!('ref' in event)) return
    const { type, ref } = event
    if (type === 'healthy') this.#done.add(ref.member)
    if (type === 'failed') this.#failed.add(ref.member)
    if (type === 'act') this.#failed.delete(ref.member)
  }

  // --- the truth

  #isOut(side: number, name: string): boolean {
    return this.#sides[side]?.state({ pool: 'web', member: name }) !== 'ready'
  }

  #judgeAct(member: string, attempt: number): void {
    const { canary } = this.#told
    if (attempt <= (this.#attempts.get(member) ?? 0)) this.faults.push(`${member}: attempt again`)
    this.#attempts.set(member, attempt)
    if (this.#acting.has(member)) this.faults.push(`${member} is acted on twice at once`)
    const under = this.#done.size + this.#acting.size
    if (this.#done.size < canary && under >= canary)
      this.faults.push(`${member} is acted on before ${canary} canaries are through`)
    // A reload between the newest look at one balancer and that at the other is not seen by either.
    const looks = this.#seen.map((seen) => seen.get(member) ?? { at: -Infinity, idle: false })
    const { at, idle } = looks.reduce((one, other) => (one.at <= other.at ? one : other))
    if (!idle) this.faults.push(`${member} is acted on, and was not out and idle on both at once`)
    if (this.#clock.now() - at > LOOKS_APART)
      this.faults.push(`${member} is acted on, and was seen last ${this.#clock.now() - at} ms ago`)
  }

  #see(members: readonly string[], seen: Map<string, Seen>): void {
    const at = this.#clock.now()
    for (const member of members) {
      const idle = this.#sides.every(
        (lb, side) => this.#isOut(side, member) && lb.load({ pool: 'web', member }) === 0,
      )
      seen.set(member, { at, idle })
    }
  }

  /** Who serves, and who is out by our doing. */
  #count(): void {
    const { keepReady, maxUnavailable } = this.#told
    for (const side of this.#sides.keys()) {
      const out = names.filter((name) => this.#isOut(side, name))
      const others = names.filter((name) => this.#theirs.has(`${side} ${name}`))
      const serving = SIZE - out.length
      if (serving < Math.min(keepReady, SIZE - others.length))
        this.faults.push(`${serving} serve on ${side}, keepReady ${keepReady}`)
      const ours = out.filter((name) => !others.includes(name))
      if (ours.length > maxUnavailable)
        this.faults.push(`${ours.join(', ')} are out on ${side}, at most ${maxUnavailable} may be`)
    }
  }

  #asBefore(): void {
    for (const side of this.#sides.keys()) {
      for (const name of names) {
        if (this.#forgotten.has(`${side} ${name}`)) continue
        const wished = this.#theirs.has(`${side} ${name}`)
        if (this.#isOut(side, name) !== wished)
          this.faults.push(`${name} is left ${wished ? 'open' : 'drained'} on ${side}`)
      }
    }
    if (this.#tickets.map.has('job')) this.faults.push('the ticket of a roll that is done is kept')
  }

  // --- what happens

  async #happen({ kind, server, side }: Step): Promise<void> {
    const lb = this.#sides[side]
    const name = names[server]
    if (lb === undefined || name === undefined) return
    const ref = { pool: 'web', member: name }
    const serves = !this.#isOut(side, name)
    switch (kind) {
      case 'occupy':
        if (serves) this.#open.push(lb.occupy(ref))
        break
      case 'arrive':
        if (serves) lb.arrive(ref)
        break
      case 'free':
        this.#open.shift()?.()
        break
      case 'reload':
        lb.reload()
        this.#forgetTheirs(side)
        break
      case 'away':
        lb.disconnect()
        this.#clock.setTimeout(() => lb.connect(), 3_000)
        break
      case 'drained':
        this.#takeOut(side, name)
        break
      case 'crash':
        await this.#crash()
        break
      case 'lease lost':
        if (this.#told.leased) await this.#loseLease()
        break
      case 'close':
        await this.#clock.runUntil(this.#run?.close() ?? Promise.resolve())
        await this.#resume()
    }
  }

  /** What a reload opened is out afterwards only where the roll holds it by then: either is right. */
  #forgetTheirs(side: number): void {
    for (const name of names)
      if (this.#theirs.delete(`${side} ${name}`)) this.#forgotten.add(`${side} ${name}`)
  }

  /** By another client, while no server is out: what may be taken beside it then is seen by the floor. */
  #takeOut(side: number, name: string): void {
    const isWhole = this.#sides.every((_, of) => names.every((each) => !this.#isOut(of, each)))
    if (!isWhole || this.#theirs.size > 0 || this.#told.keepReady >= SIZE - 1) return
    // A server that the roll has not finished is the roll's to open, even if a reload has opened it meanwhile.
    const { servers = [] } = this.#run?.report() ?? {}
    const server = servers.find(({ refs }) => refs.some(({ member }) => member === name))
    if (server?.outcome !== 'done' && server?.outcome !== 'untouched') return
    this.#sides[side]?.setBehind({ pool: 'web', member: name }, 'maint')
    this.#theirs.add(`${side} ${name}`)
  }

  /** Killed: the next process goes on from what the store has. */
  async #crash(): Promise<void> {
    this.#process.die()
    this.#processes += 1
    this.#process = new UserProcess(this.#processes, this.#clock)
    await this.#resume()
  }

  /** Another client has the lease for a while: the roll ends by itself, and changes nothing after that. */
  async #loseLease(): Promise<void> {
    const run = this.#run
    if (run === undefined || this.#lease.held === null) return
    this.#lease.seize('another client')
    await this.#clock.runUntil(run.done)
    const changes = (): number =>
      this.#sides.reduce(
        (all, { requests }) => all + requests.filter(({ verb }) => verb === 'apply').length,
        0,
      )
    const before = changes()
    await this.#clock.advance(1_000)
    if (changes() > before) this.faults.push('something is changed after the lease was lost')
    const { held } = this.#lease
    const context = { signal: new AbortController().signal, clock: this.#clock }
    await this.#lease.release(held, context)
    await this.#resume()
  }
}

/** Plays a story. @returns what must never be, and was */
export async function playRoll(told: Story): Promise<readonly string[]> {
  const play = new RollPlay(told)
  const { clock } = play
  const leave = withHost({ wall: () => clock.wall(), uptime: () => clock.now(), random: () => 0.5 })
  try {
    await play.play()
  } finally {
    leave()
  }
  return play.faults
}
