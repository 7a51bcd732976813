import { atLeast } from '../../provider/admin-state.js'
import { loseIdle } from './decide/idle.js'
import type { Draft } from './draft.js'
import type { Sight } from './input.js'
import { forgetSamples } from './scopes.js'
import { isLetGo, type DrainState } from './state.js'
import { isSameIdentity } from '../../provider/member-ref.js'

/**
 * Whether another run of this process saw the member lower than the hold that this drain has in force, later than its own
 * newest look: it looks at once, so that the hold is put back soon.
 */
export function contradicts(state: DrainState, { own, identity, askedAt }: Sight): boolean {
  const { hold, proof, last, found } = state
  if (last === null || askedAt <= Math.max(last.askedAt, hold.confirmedAt)) return false
  if (isLetGo(state) || proof.effectiveSince === null) return false
  return isSameIdentity(identity, found?.identity) && !atLeast(own, hold.confirmed)
}

/**
 * Nothing that was counted until then proves anything any more, also where the next look finds it as wished again. Once
 * the run has its outcome, its own next look tells more.
 */
export function absorbSight(draft: Draft, sight: Sight): void {
  if (draft.state.ending.settled || !contradicts(draft.state, sight)) return
  const scopes = forgetSamples(draft.state.proof.scopes)
  draft.proof({ effectiveSince: null, inForce: false, scopes })
  loseIdle(draft)
}
