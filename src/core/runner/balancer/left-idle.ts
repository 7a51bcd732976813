import type { DrainableProvider } from '../../../provider/contract.js'
import type { DrainState } from '../../machine/state.js'

/** Who wants to know what a drain leaves idle on a provider. It is remembered only where a drain does. */
const listeners = new WeakMap<DrainableProvider, (state: DrainState) => void>()

/** Listens to members that drains leave idle, so that their idle is not announced twice. */
export function onLeftIdle(
  provider: DrainableProvider,
  listener: ((state: DrainState) => void) | undefined,
): void {
  if (listener === undefined) listeners.delete(provider)
  else listeners.set(provider, listener)
}

/** A drain lets go of its members. */
export function leaveIdle(provider: DrainableProvider, states: readonly DrainState[]): void {
  const listener = listeners.get(provider)
  if (listener === undefined) return
  for (const state of states) if (state.phase === 'idle') listener(state)
}
