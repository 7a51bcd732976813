import type { DrainableProvider } from '../provider/contract.js'
import type { DrainEvent } from './events.js'
import { emitterOf } from './runner/emitters.js'
import { Discovery } from './verbs/discovery.js'

/**
 * The events of every drain and watch on a provider, and of members somebody else drains. Every
 * provider made by our factories has these.
 */
export interface ProviderEvents {
  /** Listens to one kind of event, for all members under drain or `watch`, whoever drains them. */
  on<K extends DrainEvent['type']>(e: K, fn: (ev: Extract<DrainEvent, { type: K }>) => void): this
  /** Stops listening. With the last listener the looking stops too. */
  off<K extends DrainEvent['type']>(e: K, fn: (ev: Extract<DrainEvent, { type: K }>) => void): this
}

/**
 * Gives a provider of your own the drain events.
 *
 * While anybody listens, the provider is looked at from time to time, so that drains begun from
 * outside (an operator's `set server`, another controller) give events too. That looking does not keep
 * the process alive and ends once the provider is closed.
 *
 * @returns the same object, with `on` and `off`
 */
export function withEvents<P extends DrainableProvider>(p: P): P & ProviderEvents {
  const provider = p as P & ProviderEvents
  const emitter = emitterOf(provider)
  let discovery: Discovery | undefined
  const on = (type: DrainEvent['type'], fn: (event: DrainEvent) => void): typeof provider => {
    emitter.on(type, fn)
    discovery ??= new Discovery(provider)
    return provider
  }
  const off = (type: DrainEvent['type'], fn: (event: DrainEvent) => void): typeof provider => {
    emitter.off(type, fn)
    if (emitter.eventNames().length === 0) {
      discovery?.stop()
      discovery = undefined
    }
    return provider
  }
  Object.defineProperties(provider, {
    on: { value: on, configurable: true },
    off: { value: off, configurable: true },
  })
  return provider
}
