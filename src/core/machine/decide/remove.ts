import type { Draft } from '../draft.js'
import { endRefused, isRefused } from '../ledger/result.js'
import { send } from './send.js'

/**
 * Takes an idle member out of its pool. Before that, every change of ours with a lost answer must have expired: if it
 * took effect afterwards, it would hit whatever member has the name then.
 */
export function remove(draft: Draft): void {
  const { ref, hold } = draft.state
  if (hold.late.length > 0) return
  const change = { kind: 'remove' as const, ref, ...draft.identity }
  if (isRefused(draft.state, change)) endRefused(draft)
  else send(draft, change)
}
