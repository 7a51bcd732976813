import type { DrainableProvider } from '../../../provider/contract.js'
import type { Sight } from '../../member/sight.js'

/** The listeners to members that drains leave idle on a provider. */
const listeners = new WeakMap<DrainableProvider, (sight: Sight) => void>()

/** Listens to members that drains leave idle, so that their idle is not reported twice. */
export function onLeftIdle(
  provider: DrainableProvider,
  listener: ((sight: Sight) => void) | undefined,
): void {
  if (listener === undefined) listeners.delete(provider)
  else listeners.set(provider, listener)
}

/** Called when a drain lets go of its members. */
export function leaveIdle(provider: DrainableProvider, sights: readonly Sight[]): void {
  const listener = listeners.get(provider)
  if (listener === undefined) return
  for (const sight of sights) if (sight.claim.phase === 'idle') listener(sight)
}
