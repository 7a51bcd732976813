import type { Change } from '../../../provider/contract.js'
import type { Draft } from '../draft.js'
import { endRefused, isRefused } from '../ledger/result.js'
import { incarnationsOf, ownOf } from '../state.js'
import { loseIdle } from './idle.js'

/**
 * Sends a change, unless a wait is in progress.
 *
 * @returns whether the change was sent
 */
export function send(draft: Draft, change: Change, first = false): boolean {
  const { hold } = draft.state
  if (draft.now < hold.notBefore || hold.pending !== null) return false
  if (hold.incarnations === null) draft.hold({ incarnations: incarnationsOf(draft.state) })
  if (first) draft.hold({ floor: 'granted' })
  draft.apply(change, first)
  return true
}

/** Sends the wanted hold, without which the drain can't go on. The first one needs the floor's consent. */
export function sendHold(draft: Draft): void {
  const { hold, ref } = draft.state
  if (hold.wish === 'none') return
  const first = hold.floor === 'unasked'
  const change = { kind: 'hold' as const, to: hold.wish, ref, ...draft.identity }
  if (!isRefused(draft.state, change)) {
    send(draft, change, first)
    return
  }
  loseIdle(draft) // it was kept for as long as it could still be put back
  endRefused(draft)
  if (ownOf(draft.state) === 'ready') draft.phase('active')
}
