/** A world in which one call of the caller's own store, lease or callback gets no answer. */
import { randomUUID } from 'node:crypto'
import { combineProviders, type DrainableProvider, type Lease, type Ticket } from 'drainable'
import type { TicketStore, Why } from 'drainable'
import {
  fakeClock,
  fakeLease,
  fakeProvider,
  type FakeClock,
  type FakeProvider,
} from 'drainable/testing'
import { json } from '../core/rig.js'

/** What a call is called: `get`, `renew`, `onTicket`. */
export type CallName =
  'get' | 'set' | 'delete' | 'keys' | 'acquire' | 'renew' | 'release' | 'onTicket'

/** One of several parts of the outside that can be asked. */
export class World {
  readonly clock: FakeClock = fakeClock(1_000)
  readonly instance = randomUUID()
  readonly kept = new Map<string, unknown>()
  readonly lease: Lease
  /** The calls so far, in order. */
  readonly calls: CallName[] = []
  /** What was said: the texts of `why()`, events, errors and reports. */
  readonly said: string[] = []
  /** Which call gets no answer, from 0; none if it is negative. */
  readonly #hangAt: number
  readonly #hung = Promise.withResolvers<undefined>()
  #late: (() => Promise<unknown>) | undefined
  readonly #parts = new Map<string, FakeProvider>()

  constructor(hangAt: number) {
    this.#hangAt = hangAt
    const engine = fakeLease({ clock: this.clock })
    this.lease = {
      name: engine.name,
      acquire: (...args) => this.#call('acquire', () => engine.acquire(...args)),
      renew: (...args) => this.#call('renew', () => engine.renew(...args)),
      release: (...args) => this.#call('release', () => engine.release(...args)),
    }
  }

  /** Resolves when the call has come that gets no answer. */
  get hung(): Promise<unknown> {
    return this.#hung.promise
  }

  /** The call that got no answer is carried out after all. */
  async carryOut(): Promise<void> {
    await this.#late?.()
    this.#late = undefined
  }

  /** @param lists - whether the store lists its keys by itself */
  store(lists = true): TicketStore {
    const { kept } = this
    return {
      get: (key) => this.#call('get', async () => json(kept.get(key) ?? null)),
      set: (key, value) => this.#call('set', async () => kept.set(key, json(value))),
      delete: (key) => this.#call('delete', async () => kept.delete(key)),
      ...(lists ? { keys: () => this.#call('keys', async () => [...kept.keys()]) } : {}),
    }
  }

  readonly onTicket = async (ticket: Ticket): Promise<void> => {
    await this.#call('onTicket', async () => void json(ticket))
  }

  balancer(name = 'a'): FakeProvider {
    const { clock, instance } = this
    const known = this.#parts.get(name)
    const pools = { web: ['web1', 'web2', 'web3'] }
    const lb = known ?? fakeProvider({ pools, clock, instance: `${instance} ${name}` })
    this.#parts.set(name, lb)
    return lb
  }

  both(): DrainableProvider {
    return combineProviders({ a: this.balancer('a'), b: this.balancer('b') })
  }

  /** Members that are not ready. */
  get down(): readonly string[] {
    return [...this.#parts].flatMap(([name, lb]) =>
      ['web1', 'web2', 'web3'].flatMap((member) =>
        lb.state({ pool: 'web', member }) === 'ready' ? [] : [`${name}/${member}`],
      ),
    )
  }

  /** Notes what an event, an error or a report says. */
  readonly hear = (one: unknown): void => {
    const text = JSON.stringify({ one }, (_, value: unknown) =>
      value instanceof Error ? { text: value.message, cause: value.cause } : value,
    )
    this.said.push(text)
  }

  note(why: readonly Why[]): void {
    for (const { code, text } of why) this.said.push(`${code}: ${text}`)
  }

  async #call<T>(name: CallName, answer: () => Promise<T>): Promise<T> {
    const n = this.calls.push(name) - 1
    if (n !== this.#hangAt) return answer()
    this.#hung.resolve(undefined)
    return new Promise<T>((resolve, reject) => {
      this.#late = () => answer().then(resolve, reject)
    })
  }
}
