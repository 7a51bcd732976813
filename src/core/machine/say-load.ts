import type { LoadScope } from '../../provider/contract.js'
import type { Draft } from './draft.js'
import { readScopes } from './state.js'
import { explain } from './why.js'

/** How long after the last load event it is repeated without a change, in milliseconds. */
const SAY_AGAIN = 1_000

/** Emits the load of a member under drain or watch when it changed, and at least once a second. */
export function sayLoad(draft: Draft): void {
  const { state } = draft
  if (state.phase === 'removed' || state.goal.kind === 'open') return
  const why = explain(state, draft.policy, draft.now, draft.wall - draft.now)
  const read = readScopes(state)
  const queued = read.reduce((sum, scope) => sum + scope.queued, 0)
  const active = read.reduce((sum, scope) => sum + scope.active, 0)
  const known = state.proof.scopes.size
  const complete = read.length === known && known > 0
  const { phase } = state
  const reading = state.last?.reading
  const { own, health } = reading?.present === true ? reading : { own: null, health: null }
  const reasons = why.map((w) => [w.code, w.scope])
  const key = JSON.stringify([active, queued, complete, phase, own, health, reasons])
  const quiet = state.said?.key === key && draft.now - state.said.at < SAY_AGAIN
  if (quiet || (state.said?.key === key && state.phase === 'idle')) return
  draft.set({ said: { key, at: draft.now } })
  const scopes = [...state.proof.scopes.values()].map(({ last }) => last)
  const deadline = state.deadline === null ? null : draft.iso(state.deadline)
  const seen = { active, oldest: oldestOf(read), queued, complete, why, phase, own, health, scopes }
  const event = { type: 'load' as const, ...draft.stamp, ...seen, deadline }
  const at = draft.effects.findIndex((e) => e.type === 'emit' && e.event.type === 'phase')
  if (at < 0) draft.emit(event)
  else draft.effects.splice(at, 0, { type: 'emit', event }) // the load that led to the phase comes first
}

function oldestOf(scopes: readonly LoadScope[]): number | null {
  const ages = scopes.flatMap(({ oldest }) => oldest ?? [])
  return ages.length === 0 ? null : Math.max(...ages)
}
