import type { DrainableProvider } from '../../provider/contract.js'
import { DRAIN_EVENTS, type DrainEvent } from '../events.js'
import { listenersOf } from '../balancer/emitters.js'
import { withEvents, type ProviderEvents } from '../with-events.js'
import type { Parts } from './parts.js'
import { tagEvent } from './tag.js'

/** The end of a drain over several balancers is said once, by that drain. */
const TYPES = (Object.keys(DRAIN_EVENTS) as DrainEvent['type'][]).filter((type) => type !== 'end')

/**
 * Gives a combined provider the events of its parts, with their keys. The parts are listened to while
 * a listener is there.
 */
export function withPartEvents<P extends DrainableProvider>(
  provider: P,
  { all }: Parts,
): P & ProviderEvents {
  const listeners = listenersOf(provider)
  let listening = false
  const forwards = [...all].map(([key, part]) => ({
    part,
    hear: (event: DrainEvent): void => {
      listeners.emit(tagEvent(event, key))
      follow() // one that listened for one event only is gone now
    },
  }))
  function follow(): void {
    if (listening === !listeners.isEmpty) return
    listening = !listening
    for (const { part, hear } of forwards) {
      const events = hasEvents(part) ? part : withEvents(part)
      for (const type of TYPES) events[listening ? 'on' : 'off'](type, hear)
    }
  }
  const verb = (name: 'on' | 'once' | 'off') => ({
    value(type: string, listener: unknown): P {
      listeners[name](type, listener)
      follow()
      return provider
    },
    configurable: true,
  })
  const off = verb('off')
  Object.defineProperties(provider, {
    on: verb('on'),
    once: verb('once'),
    off,
    removeListener: off,
  })
  return provider as P & ProviderEvents
}

function hasEvents(part: DrainableProvider): part is DrainableProvider & ProviderEvents {
  const { on, off } = part as Partial<ProviderEvents>
  return typeof on === 'function' && typeof off === 'function'
}
