import type { DrainableProvider, TicketStore } from 'drainable'
import type { FakeProvider } from 'drainable/testing'
import type { UserProcess } from './user-process.js'

/** A process dies at one of its calls: that one is carried out, or is not, and no process hears of it. */
export interface Death {
  readonly at: number
  readonly last: 'done' | 'lost'
}

/** The calls of one process that may die at one of them. Looks one after another count once. */
export class Mortal {
  readonly mine: UserProcess
  readonly #death: Death | undefined
  #calls = 0
  #hasLooked = false

  constructor(mine: UserProcess, death?: Death) {
    this.mine = mine
    this.#death = death
  }

  /** The same balancer as this process sees it. */
  balancer(lb: FakeProvider): DrainableProvider {
    return {
      specVersion: 1,
      name: lb.name,
      instance: lb.instance,
      describe: (ctx) => this.#call(() => lb.describe(ctx)),
      observe: (refs, ctx) => this.#call(() => lb.observe(refs, ctx), true),
      apply: (changes, ctx) => this.#call(() => lb.apply(changes, ctx)),
      close: () => Promise.resolve(),
      [Symbol.asyncDispose]: () => Promise.resolve(),
    }
  }

  store(store: TicketStore): TicketStore {
    return {
      get: (key) => this.#call(() => store.get(key), true),
      set: (key, value) => this.#call(() => store.set(key, value)),
      delete: (key) => this.#call(() => store.delete(key)),
      keys: () => [],
    }
  }

  /** Anything else that others see: the caller's function. */
  other<T>(call: () => Promise<T>): Promise<T> {
    return this.#call(call)
  }

  async #call<T>(call: () => Promise<T>, isLook = false): Promise<T> {
    const never = new Promise<never>(() => undefined)
    const isAlive = (): boolean => this.mine.alive
    if (!isAlive()) return never
    const isAnother = isLook && this.#hasLooked
    this.#hasLooked = isLook
    if (!isAnother) this.#calls += 1
    if (this.#death !== undefined && !isAnother && this.#calls === this.#death.at) {
      this.mine.die()
      if (this.#death.last === 'done') await call()
      return never
    }
    const answer = await call()
    return isAlive() ? answer : never
  }
}
