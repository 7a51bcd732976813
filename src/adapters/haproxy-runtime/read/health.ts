import type { Health } from '../../../provider/contract.js'
import type { Sight } from './read.js'

/** A last check that passed. */
const PASSED = /^(L4OK|L6OK|L7OK|L7OKC|PROCOK)$/

/**
 * The health by HAProxy's checks; `up` means that one has passed since the server left maintenance.
 *
 * HAProxy calls a server UP the moment it leaves maintenance and counts its health from `rise`; the first passed
 * check raises that to rise + fall - 1. So with `fall` above 1 the number shows it. With `fall 1` both are the same:
 * then the adapter also sends `health down` when a server leaves maintenance (see `changes.ts`), and the status shows
 * it.
 */
export function toHealth({ row, state, own, inherited }: Sight): Health {
  // No check runs, and none can run before the inherited state changes: the name, or the server it tracks.
  if (inherited === 'maint' && own !== 'maint') return 'unchecked'
  if (own === 'maint' || inherited === 'maint' || row.status.startsWith('MAINT')) {
    return state.checks || row.tracked !== '' ? 'unknown' : 'unchecked'
  }
  if (row.status.startsWith('DOWN')) return 'down'
  if (row.tracked !== '') return trackedHealth(row.status)
  const { check } = row
  if (check === undefined) return state.checks ? 'unknown' : 'unchecked'
  if (check.fall > 1) return check.health > check.rise ? 'up' : 'unknown'
  return check.health >= check.rise && PASSED.test(check.status) ? 'up' : 'unknown'
}

/** A tracking server shows the health of the tracked one only as text: `UP 1/3` before the first passed check. */
function trackedHealth(status: string): Health {
  if (/ \d+\/\d+$/.test(status)) return 'unknown'
  return /^(UP|DRAIN)/.test(status) ? 'up' : 'unknown'
}
