import { atLeast } from '../../provider/admin-state.js'
import { loseIdle } from './decide/idle.js'
import type { Draft } from './draft.js'
import type { Sight } from './input.js'
import { forgetSamples } from './scopes.js'
import { isLetGo, type DrainState } from './state.js'

/**
 * Whether a look of another run of this process contradicts this drain: it was later than this drain's newest look
 * and showed the member lower than the hold in force. Once the run has its outcome, its own next look decides.
 */
export function contradicts(state: DrainState, { own, identity, askedAt }: Sight): boolean {
  const { hold, proof, last, found, ending } = state
  if (last === null || askedAt <= Math.max(last.askedAt, hold.confirmedAt)) return false
  if (ending.settled || isLetGo(state) || proof.effectiveSince === null) return false
  return identity === found?.identity && !atLeast(own, hold.confirmed)
}

/** Drops all samples up to then: they prove nothing, even if the next look finds the member as wanted again. */
export function absorbSight(draft: Draft, sight: Sight): void {
  if (!contradicts(draft.state, sight)) return
  const scopes = forgetSamples(draft.state.proof.scopes)
  draft.proof({ effectiveSince: null, inForce: false, scopes })
  loseIdle(draft)
}
