/**
 * Random stories on the fakes of products that are reached over HTTP: drains, undos, openings, operators, work, lost and
 * refused requests, late effects, logins that end, failovers and reloads. The truth is in the fake; what we say is judged by it.
 */
import {
  ready,
  restore,
  resumeDrain,
  startDrain,
  type Drain,
  type DrainEvent,
  type DrainReport,
  type MemberReport,
  type Policy,
  type Ticket,
} from 'drainable'
import type { AdminState, DrainableProvider } from 'drainable/provider'
import { ioClock } from '../../support/io-clock.js'
import { Random } from '../random.js'
import { type Product, SECRET, type Shape, startDevice } from './device.js'
import { DeviceWorld, type Member } from './world.js'

/** What was found in one story. */
export interface Played {
  readonly faults: readonly string[]
  readonly counts: ReadonlyMap<string, number>
}

/** How long after its deadline a drain may take to end, in milliseconds. */
const SLACK = 120_000

export async function playOnDevice(
  product: Product,
  seed: number,
  trace?: (line: string) => void,
): Promise<Played> {
  using clock = ioClock()
  const random = new Random(seed)
  const shape: Shape = {
    pair: random.chance(0.4),
    latency: random.pick([5, 20, 20, 100, 400]),
    lag: random.pick([0, 0, 500, 2_000]),
  }
  await using device = await startDevice(product, shape, clock)
  const story = new DeviceStory(new DeviceWorld(device, clock, random, trace))
  trace?.(`${product} ${JSON.stringify(shape)}`)
  return await clock.run(story.play())
}

class DeviceStory {
  readonly #world: DeviceWorld
  readonly #lbs: DrainableProvider[] = []
  /** The calls that each member has had. */
  readonly #users = new Map<Member, Set<number>>()

  constructor(world: DeviceWorld) {
    this.#world = world
  }

  async play(): Promise<Played> {
    const { random, faults, counts } = this.#world
    const calls = Array.from({ length: random.int(1, 3) }, (_, i) => this.#drain(i + 1))
    await Promise.all([...calls, this.#world.go()])
    await Promise.all(this.#lbs.map((lb) => lb.close()))
    return { faults, counts }
  }

  // --- the calls

  async #drain(n: number): Promise<void> {
    const random = this.#world.random
    await this.#world.sleep(random.int(0, 12_000))
    const mine = random.some(this.#world.members, 2)
    const timeout = random.pick([20_000, 40_000, 90_000])
    const policy: Policy = {
      clock: this.#world.clock,
      timeout,
      settle: random.pick([0, 1_000]),
      keepReady: random.pick([0, 1]),
      onTimeout: random.pick(['fail', 'fail', 'terminate', 'proceed']),
      ifUnsupported: 'proceed',
      id: `d${n}`,
      ...(random.chance(0.3) && { seal: random.chance(0.5) }),
      ...(random.chance(0.2) && { hold: 'maint' as const }),
    }
    for (const member of mine) {
      Object.assign(member, { isTarget: true, calledAt: this.#world.now })
      this.#users.set(member, new Set([...(this.#users.get(member) ?? []), n]))
    }
    const before = await this.#states(mine)
    const lb = this.#connect()
    this.#world.say(
      `d${n} drains ${named(mine)} ${JSON.stringify({ ...policy, clock: undefined })}`,
    )
    const run = startDrain(
      lb,
      mine.map(({ ref }) => ref),
      policy,
    )
    run.on('idle', (event) => this.#judgeIdle(n, event))
    if (random.chance(0.25)) {
      await this.#world.sleep(random.int(100, 15_000))
      await this.#undo(n, run, mine, before, lb)
      return
    }
    const report = await this.#within(run.done, timeout + SLACK, `d${n} does not end`)
    if (report === undefined) return
    this.#judgeReport(n, report)
    this.#world.count(`outcome: ${report.outcome}`)
    this.#world.say(
      `d${n} ends as ${report.outcome} ${String(report.error ?? report.members.find(({ error }) => error)?.error ?? '')}`,
    )
    if (random.chance(0.4)) await this.#world.sleep(random.int(10, 8_000))
    if (random.chance(0.6)) await this.#undo(n, run, mine, before, lb)
    else if (random.chance(0.5)) {
      await run.release()
      await this.#open(n, mine)
    } else await run.release()
  }

  async #undo(
    n: number,
    run: Drain,
    mine: readonly Member[],
    before: readonly AdminState[],
    lb: DrainableProvider,
  ): Promise<void> {
    const random = this.#world.random
    const from = this.#world.now
    let undoing: Promise<DrainReport>
    const how = random.pick(['handle', 'released', 'ticket', 'resumed'] as const)
    this.#world.say(`d${n} is undone (${how})`)
    if (how === 'handle') undoing = run.restore()
    else {
      await run.release()
      const ticket = JSON.parse(JSON.stringify(await run.ticket)) as Ticket
      const other = random.chance(0.5) ? lb : this.#connect()
      if (how === 'released') undoing = run.restore()
      else if (ticket.members.length === 0) return
      else if (how === 'ticket') undoing = restore(other, ticket, { clock: this.#world.clock })
      else {
        const again = resumeDrain(other, ticket, { clock: this.#world.clock })
        again.on('idle', (event) => this.#judgeIdle(n, event))
        await this.#world.sleep(random.int(0, 5_000))
        undoing = again.restore()
      }
    }
    const report = await this.#within(undoing, SLACK, `the undo of d${n} does not end`)
    if (report === undefined) return
    this.#world.count(`undone: ${report.outcome}`)
    this.#judgeWords(report)
    const states = await this.#states(mine)
    for (const [i, member] of mine.entries()) {
      const row = report.members.find(({ ref }) => ref.member === member.ref.member)
      const isAlone = member.calledAt <= from && (member.set?.at ?? -Infinity) < from - 10_000
      if (row?.outcome !== 'restored' || !isAlone || member.set !== undefined) continue
      const was = before[i]
      if (this.#others(n, member)) continue
      if (states[i] !== was)
        this.#world.fault(
          'undo',
          `d${n}: ${member.ref.member} is restored, was ${was}, is ${states[i]}`,
        )
    }
  }

  /** Whether another call has had the member too: whose state it is can't be told from here. */
  #others(n: number, member: Member): boolean {
    return [...(this.#users.get(member) ?? [])].some((one) => one !== n)
  }

  async #open(n: number, mine: readonly Member[]): Promise<void> {
    const from = this.#world.now
    for (const member of mine) member.calledAt = from
    this.#world.say(`d${n}: ready ${named(mine)}`)
    try {
      const opening = ready(
        this.#connect(),
        mine.map(({ ref }) => ref),
        { clock: this.#world.clock },
      )
      const done = await this.#within(opening, SLACK, `ready() after d${n} does not end`)
      if (done === undefined) return
      this.#world.count('ready')
      const states = await this.#states(mine)
      for (const [i, member] of mine.entries()) {
        const isAlone = member.calledAt === from && (member.set?.at ?? -Infinity) < from
        if (isAlone && states[i] !== 'ready')
          this.#world.fault('ready', `${member.ref.member} is ${states[i]} after ready()`)
      }
    } catch (thrown) {
      this.#world.count('ready failed')
      this.#judgeText(String(thrown))
    }
  }

  #connect(): DrainableProvider {
    const lb = this.#world.device.connect()
    this.#lbs.push(lb)
    return lb
  }

  #states(mine: readonly Member[]): Promise<AdminState[]> {
    return Promise.all(mine.map(({ ref }) => this.#world.device.state(ref)))
  }

  async #within<T>(promise: Promise<T>, ms: number, words: string): Promise<T | undefined> {
    let cancel: () => void = () => undefined
    const late = new Promise<undefined>((resolve) => {
      cancel = this.#world.clock.setTimeout(() => {
        this.#world.fault('end', words)
        resolve(undefined)
      }, ms)
    })
    try {
      return await Promise.race([promise, late])
    } finally {
      cancel()
    }
  }

  // --- the judge

  #judgeIdle(n: number, { ref, proof }: Extract<DrainEvent, { type: 'idle' }>): void {
    const member = this.#world.members.find((one) => one.ref.member === ref.member)
    if (member === undefined) return
    this.#world.count('idle said')
    this.#world.say(`d${n}: ${ref.member} is idle: ${proof.text}`)
    const load = this.#world.device.load(ref, member.flows.size)
    if (load > 0) this.#world.fault('idle', `d${n}: ${ref.member} has ${load} in flight`)
    const quiet = Date.parse(proof.quietSince) - this.#world.clock.wall() + this.#world.now
    if (member.arrivedAt > quiet + 1 && member.arrivedAt < this.#world.now - this.#seen(proof))
      this.#world.fault(
        'idle',
        `d${n}: ${ref.member} had an arrival at ${member.arrivedAt}, quiet since ${quiet}`,
      )
  }

  /** How long ago the last sample of a proof was taken. */
  #seen({ samples }: Extract<DrainEvent, { type: 'idle' }>['proof']): number {
    const last = samples.at(-1)?.scopes.map(({ sampledAt }) => sampledAt) ?? []
    return this.#world.now - Math.min(this.#world.now, ...last)
  }

  #judgeReport(n: number, report: DrainReport): void {
    this.#judgeWords(report)
    for (const row of report.members) {
      const member = this.#world.members.find((one) => one.ref.member === row.ref.member)
      if (member === undefined) continue
      const load = this.#world.device.load(member.ref, member.flows.size)
      if (row.outcome === 'idle' && load > 0)
        this.#world.fault('idle', `d${n}: ${row.ref.member} ended idle with ${load}`)
      this.#judgeHeld(n, row, member)
    }
  }

  /** What is said not to be held is not as we had set it. */
  #judgeHeld(n: number, row: MemberReport, member: Member): void {
    if (row.held || member.set !== undefined || this.#others(n, member)) return
    if (row.wasAdmin === 'ready' && member.state !== 'ready')
      this.#world.fault(
        'held',
        `d${n}: ${row.ref.member} is ${member.state}, said not held (${row.outcome})`,
      )
  }

  #judgeWords(report: DrainReport): void {
    this.#judgeText(
      JSON.stringify(report, (_, value: unknown) =>
        value instanceof Error ? `${value.message} ${String(value.cause)}` : value,
      ),
    )
  }

  #judgeText(text: string): void {
    if (text.includes(SECRET)) this.#world.fault('secret', text.slice(0, 300))
  }
}

function named(members: readonly Member[]): string {
  return members.map(({ ref }) => ref.member).join(', ')
}
