import type { DrainableProvider } from '../provider/contract.js'
import type { Listeners, TypedEvents } from './event-hub.js'
import type { ProviderEvent } from './events.js'
import { listenersOf } from './balancer/home.js'
import { checkProvider } from './calls/call-options.js'
import { Discovery } from './calls/discovery.js'

/**
 * The events of every drain and watch on a provider, and of members that other clients drain. Every provider from our
 * factories has them. When the last listener is removed, the extra looks stop.
 */
export type ProviderEvents = TypedEvents<ProviderEvent>

/**
 * Adds the drain events to your own provider.
 *
 * While there is a listener, it looks at all members from time to time, so that drains begun by other clients (an
 * operator's `set server`, another controller) give events too. These looks do not keep the process alive and end
 * once the provider is closed.
 *
 * @param provider - your own adapter; those of this package have the events already
 * @throws `INVALID_OPTIONS` if it is not a provider
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

/** Looks for drains begun by other clients while there is a listener. */
class Search {
  readonly #provider: DrainableProvider
  readonly #listeners: Listeners<ProviderEvent>
  #discovery: Discovery | undefined

  constructor(provider: DrainableProvider, listeners: Listeners<ProviderEvent>) {
    this.#provider = provider
    this.#listeners = listeners
  }

  begin(): void {
    // A `once` listener may be gone by now.
    this.#discovery ??= new Discovery(this.#provider, () => this.endIfUnheard())
  }

  /** Ends the search if no listener is left. @returns whether it ended */
  endIfUnheard(): boolean {
    if (!this.#listeners.isEmpty) return false
    this.#discovery?.stop()
    this.#discovery = undefined
    return true
  }
}
