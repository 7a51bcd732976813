import type { DrainableProvider } from '../provider/contract.js'
import type { Listeners, TypedEvents } from './emitter.js'
import type { DrainEvent } from './events.js'
import { listenersOf } from './runner/balancer/emitters.js'
import { checkProvider } from './verbs/call.js'
import { Discovery } from './verbs/discovery.js'

/**
 * The events of every drain and watch on a provider, and of members that others drain. Every
 * provider made by our factories has these. With the last listener the looking stops too.
 */
export type ProviderEvents = TypedEvents<DrainEvent>

/**
 * Gives a provider of your own the drain events.
 *
 * While a listener is there, the provider is looked at from time to time, so that drains begun from
 * outside (an operator's `set server`, another controller) give events too. That looking does not keep
 * the process alive and ends once the provider is closed.
 *
 * @param provider - an adapter of your own; those of this package have the events already
 * @throws `INVALID_OPTIONS` where it is no provider
 * @returns the same object, with `on`, `once`, `off` and `removeListener`
 *
 * @example
 * ```ts
 * import { withEvents, type DrainableProvider } from 'drainable'
 *
 * declare const mine: DrainableProvider // an adapter of your own
 * const lb = withEvents(mine)
 * lb.on('idle', ({ ref, proof }) => console.log(ref.member, proof.text))
 * ```
 */
export function withEvents<P extends DrainableProvider>(provider: P): P & ProviderEvents {
  checkProvider(provider, 'withEvents()')
  const listeners = listenersOf(provider)
  const search = new Search(provider, listeners)
  const begin = (verb: 'on' | 'once') => ({
    value(type: string, listener: unknown): P {
      listeners[verb](type, listener)
      search.begin()
      return provider
    },
    configurable: true,
  })
  const off = {
    value(type: string, listener: unknown): P {
      listeners.off(type, listener)
      search.endIfUnheard()
      return provider
    },
    configurable: true,
  }
  Object.defineProperties(provider, {
    on: begin('on'),
    once: begin('once'),
    off,
    removeListener: off,
  })
  return provider as P & ProviderEvents
}

/** Looks for drains begun from outside while a listener is there. */
class Search {
  readonly #provider: DrainableProvider
  readonly #listeners: Listeners<DrainEvent>
  #discovery: Discovery | undefined

  constructor(provider: DrainableProvider, listeners: Listeners<DrainEvent>) {
    this.#provider = provider
    this.#listeners = listeners
  }

  begin(): void {
    // One that listened for one event only may be gone since.
    this.#discovery ??= new Discovery(this.#provider, () => this.endIfUnheard())
  }

  /** Whether it ended, because no listener is left. */
  endIfUnheard(): boolean {
    if (!this.#listeners.isEmpty) return false
    this.#discovery?.stop()
    this.#discovery = undefined
    return true
  }
}
