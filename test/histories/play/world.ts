import {
  combineProviders,
  type DrainableProvider,
  type MemberRef,
  type TicketStore,
} from 'drainable'
import { fakeClock, fakeLease, type FakeClock, type FakeLease } from 'drainable/testing'
import { Balancer, type BalancerOptions } from './balancer.js'
import { DEFAULT_BALANCER, View, type ViewOptions } from './view.js'
import { Lines } from './lines.js'
import { refOf } from './names.js'
import { prefixOf, SharedTickets } from './store.js'
import { UserProcess } from './user-process.js'

const WALL = Date.UTC(2027, 0, 1)

/** Two histories of one process of Node never share a balancer. */
let worlds = 0

/** Everything that a history plays on: a clock, balancers, processes, tickets. */
export class World {
  readonly clock: FakeClock = fakeClock(1_000, WALL)
  readonly lines = new Lines()
  readonly tickets = new SharedTickets(this.lines)
  readonly lease: FakeLease = fakeLease({ clock: this.clock })
  readonly balancers = new Map<string, Balancer>()
  readonly views = new Map<string, ViewOptions & { readonly balancer: string }>()
  readonly processes = new Map<string, UserProcess>()
  readonly #stores = new Map<UserProcess, TicketStore>()
  readonly #serial = (worlds += 1)

  /** The process of a name; it begins with its first command. */
  process(name: string): UserProcess {
    const known = this.processes.get(name)
    if (known !== undefined) return known
    const made = new UserProcess(name, this.clock)
    this.processes.set(name, made)
    return made
  }

  addBalancer(options: BalancerOptions): void {
    if (this.balancers.has(options.name)) throw new Error(`${options.name} is there already`)
    this.balancers.set(options.name, new Balancer(this.clock, options))
  }

  /** The balancer of a member. */
  balancerOf({ balancer }: Pick<MemberRef, 'balancer'>): Balancer {
    const name = balancer ?? DEFAULT_BALANCER
    if (balancer === undefined && this.balancers.size === 0) {
      const members = ['a', 'b', 'c'].map(refOf)
      this.addBalancer({ name, members, processes: ['p1'], capabilities: {} })
    }
    const found = this.balancers.get(name)
    if (found === undefined) throw new Error(`there is no balancer ${name}`)
    return found
  }

  store(process: UserProcess): TicketStore {
    const known = this.#stores.get(process) ?? this.tickets.of(process)
    this.#stores.set(process, known)
    return known
  }

  /** A provider object of a process: one for each view, whichever call uses it. */
  provider(process: UserProcess, view = DEFAULT_BALANCER): DrainableProvider {
    const known = process.providers.get(view)
    if (known !== undefined) return known
    const { balancer: of = view, ...options } = this.views.get(view) ?? {}
    const balancer = this.balancerOf(of === DEFAULT_BALANCER ? {} : { balancer: of })
    const instance = `${prefixOf(process)}${balancer.name}-${this.#serial}`
    const made = new View(instance, balancer, process, this.lines, options)
    process.providers.set(view, made)
    return made
  }

  /** Several balancers as one. */
  combined(
    process: UserProcess,
    names: readonly string[],
    options: Record<string, unknown>,
  ): DrainableProvider {
    const key = `${names.join()} ${JSON.stringify(options)}`
    const known = process.providers.get(key)
    if (known !== undefined) return known
    const parts = Object.fromEntries(names.map((name) => [name, this.provider(process, name)]))
    const made = combineProviders(parts, options)
    process.providers.set(key, made)
    return made
  }

  /** A verified idle of a member that works in truth is the one fault that no history may show. */
  isBusy(ref: MemberRef): boolean {
    return this.balancerOf(ref).fake.load(bare(ref)) > 0
  }

  /** Puts everything away: nothing that a history began is left behind, and none of it is said. */
  async close(): Promise<void> {
    this.lines.quiet = true
    for (const balancer of this.balancers.values()) {
      balancer.looks = 'come'
      await balancer.answerAll()
    }
    this.tickets.fails = false
    const processes = [...this.processes.values()]
    for (const process of processes) process.letEnd()
    for (const process of processes) {
      for (const { end } of process.working.splice(0)) end()
      for (const { handle, loop, controller } of process.calls.values()) {
        void handle?.release()
        void loop?.close()
        controller.abort(new Error('the history is over'))
      }
    }
    await this.clock.advance(100)
    for (const process of processes) {
      for (const { end } of process.working.splice(0)) end()
      for (const provider of process.providers.values()) await provider.close()
    }
    await this.clock.advance(60_000)
  }

  /** Lets everything happen that needs no more time than a few looks. */
  async pass(ms: number): Promise<void> {
    await this.clock.advance(ms)
    for (let i = 0; i < 3; i += 1) await this.clock.advance(0)
  }
}

/** A member as its own balancer names it. */
export function bare({ pool, member }: MemberRef): MemberRef {
  return { pool, member }
}
