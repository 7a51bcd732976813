import type { LoadScope } from '../../../provider/contract.js'
import type { Draft, Open } from '../draft.js'
import { readScopes } from '../claimed.js'
import { explain } from './why.js'

/** How long after the last load event it is repeated without a change, in milliseconds. */
const SAY_AGAIN = 1_000

/** Says the load of a member under drain or watch when it changed, and at least once a second. */
export function sayLoad(draft: Draft, claim: Open): void {
  if (claim.phase === 'removed' || claim.goal.kind === 'open') return
  const claimed = draft.claimed(claim)
  const why = explain(claimed, draft.now, draft.wall - draft.now)
  const read = readScopes(claimed)
  const queued = read.reduce((sum, scope) => sum + scope.queued, 0)
  const active = read.reduce((sum, scope) => sum + scope.active, 0)
  const known = claim.proof.scopes.size
  const complete = read.length === known && known > 0
  const { phase, said } = claim
  const reading = claimed.facts.last?.reading
  const { own, health } = reading?.present === true ? reading : { own: null, health: null }
  const reasons = why.map((w) => [w.code, w.scope])
  const key = JSON.stringify([active, queued, complete, phase, own, health, reasons])
  const isSame = said?.key === key
  if (isSame && (phase === 'idle' || draft.now - said.at < SAY_AGAIN)) return
  claim.said = { key, at: draft.now }
  const scopes = [...claim.proof.scopes.values()].map(({ last }) => last)
  const deadline = claim.deadline === null ? null : draft.iso(claim.deadline)
  const seen = { active, oldest: oldestOf(read), queued, complete, why, phase, own, health, scopes }
  const event = { type: 'load' as const, ...draft.stamp, ...seen, deadline }
  // The load that led to a phase comes first.
  const { effects } = draft
  const at = effects.findIndex(
    (one) => one.claim === claim.id && one.type === 'emit' && one.event.type === 'phase',
  )
  effects.splice(at < 0 ? effects.length : at, 0, { type: 'emit', claim: claim.id, event })
}

function oldestOf(scopes: readonly LoadScope[]): number | null {
  const ages = scopes.flatMap(({ oldest }) => oldest ?? [])
  return ages.length === 0 ? null : Math.max(...ages)
}
