import type { DrainableProvider } from '../../../provider/contract.js'
import type { DrainState } from '../../machine/state.js'

/** The listeners to members that drains leave idle on a provider. */
const listeners = new WeakMap<DrainableProvider, (state: DrainState) => void>()

/** Listens to members that drains leave idle, so that their idle is not reported twice. */
export function onLeftIdle(
  provider: DrainableProvider,
  listener: ((state: DrainState) => void) | undefined,
): void {
  if (listener === undefined) listeners.delete(provider)
  else listeners.set(provider, listener)
}

/** Called when a drain lets go of its members. */
export function leaveIdle(provider: DrainableProvider, states: readonly DrainState[]): void {
  const listener = listeners.get(provider)
  if (listener === undefined) return
  for (const state of states) if (state.phase === 'idle') listener(state)
}
