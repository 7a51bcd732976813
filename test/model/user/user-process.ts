import type { Clock } from 'drainable'
import { inProcess, type Globals } from './host.js'
import type { ModelProvider } from '../world/model-provider.js'
import { UserClock } from './user-clock.js'

/** One process that uses the library: its globals, its clock, its provider objects. */
export class UserProcess {
  readonly number: number
  readonly startedAt: number
  readonly globals: Globals = new Map()
  readonly clock: UserClock
  providers: readonly ModelProvider[] = []
  alive = true

  constructor(number: number, clock: Clock) {
    this.number = number
    this.startedAt = clock.now()
    this.clock = new UserClock(clock, this.globals)
  }

  get name(): string {
    return `process ${this.number}`
  }

  run<T>(fn: () => T): T {
    return inProcess(this.globals, fn)
  }

  /** Killed: nothing of it happens any more, and no answer reaches it. */
  die(): void {
    this.alive = false
    this.clock.die()
  }

  /** Balancers this process still keeps wishes for. */
  get wishesLeft(): number {
    const balancers = this.globals.get(Symbol.for('drainable.balancers.1'))
    return balancers instanceof Map ? balancers.size : 0
  }
}
