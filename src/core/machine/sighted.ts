import { atLeast } from '../../provider/admin-state.js'
import { loseIdle } from './decide/idle.js'
import type { Draft } from './draft.js'
import type { Sight } from './input.js'
import { forgetSamples } from './scopes.js'
import { isLetGo, type DrainState } from './state.js'

/**
 * Whether what another run of this process saw takes away what this drain rests on: the member was lower than its
 * hold in force, later than its own newest look. Once the run has its outcome, its own next look tells more.
 */
export function contradicts(state: DrainState, { own, identity, askedAt }: Sight): boolean {
  const { hold, proof, last, found, ending } = state
  if (last === null || askedAt <= Math.max(last.askedAt, hold.confirmedAt)) return false
  if (ending.settled || isLetGo(state) || proof.effectiveSince === null) return false
  return identity === found?.identity && !atLeast(own, hold.confirmed)
}

/** Nothing that was counted until then proves anything any more, also where the next look finds it as wished again. */
export function absorbSight(draft: Draft, sight: Sight): void {
  if (!contradicts(draft.state, sight)) return
  const scopes = forgetSamples(draft.state.proof.scopes)
  draft.proof({ effectiveSince: null, inForce: false, scopes })
  loseIdle(draft)
}
