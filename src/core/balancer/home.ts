import type { DrainableProvider } from '../../provider/contract.js'
import { Listeners } from '../event-hub.js'
import { DRAIN_EVENTS, type ProviderEvent } from '../events.js'

/**
 * What the copies of this package in one process share: an ESM and a CJS copy hold one balancer and one store together.
 * The number is that of its form; another version has a home of its own.
 */
const HOME = Symbol.for('drainable.home.1')

/** One map for each kind of thing, by its name. */
export function homeOf<T extends object>(name: string, make: () => T): T {
  const holder = globalThis as unknown as Record<symbol, Map<string, object> | undefined>
  const home = (holder[HOME] ??= new Map())
  const known = home.get(name) as T | undefined
  if (known !== undefined) return known
  const made = make()
  home.set(name, made)
  return made
}

/** The listeners of each provider, which get the events of every drain on it. */
const emitters = new WeakMap<DrainableProvider, Listeners<ProviderEvent>>()

/** The listeners of a provider. */
export function listenersOf(provider: DrainableProvider): Listeners<ProviderEvent> {
  let listeners = emitters.get(provider)
  if (listeners === undefined) {
    listeners = new Listeners(DRAIN_EVENTS)
    emitters.set(provider, listeners)
  }
  return listeners
}

/** Emits an event on the provider, if there is a listener. */
export function emitOn(provider: DrainableProvider, event: ProviderEvent): void {
  emitters.get(provider)?.emit(event)
}
