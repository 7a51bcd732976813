import type { Health } from '../../provider/contract.js'

/** A server's health check, as its row of the statistics shows it. In maintenance none is shown. */
export interface CheckCounts {
  /** The result of the last check, such as `L7OK`; `INI` before the first one, `* L7OK` while another one runs. */
  readonly status: string
  readonly rise: number
  readonly fall: number
  /** 0 to rise + fall - 1; at least rise is up. */
  readonly health: number
}

/** A last check that passed. */
const PASSED = /^(\* )?(L4OK|L6OK|L7OK|L7OKC|PROCOK)$/

/**
 * Whether a check has passed since the server left maintenance.
 *
 * HAProxy calls a server UP the moment it leaves maintenance and counts its health from `rise`; the first passed
 * check raises that to rise + fall - 1. So with `fall` above 1 the number shows it. With `fall 1` both are the same: see
 * {@link isTakenForPassed}.
 */
export function hasPassed({ status, rise, fall, health }: CheckCounts): boolean {
  return fall > 1 ? health > rise : health >= rise && PASSED.test(status)
}

/**
 * Whether the counts of a server that has just left maintenance are those of one whose check has passed: with `fall 1`,
 * and with `init-state fully-up` (3.1 and later), which gives the full credit. An adapter then marks the server down
 * (`health down`): it comes up by its own passed checks (2.6, 3.0, 3.2 and 3.4).
 */
export function isTakenForPassed({ rise, fall, health }: CheckCounts): boolean {
  return fall <= 1 || health > rise
}

/** The health of a server that tracks another one: only its text shows it, `UP 1/3` before the first passed check. */
export function trackedHealth(status: string): Health {
  if (/ \d+\/\d+$/.test(status)) return 'unknown'
  return /^(UP|DRAIN)/.test(status) ? 'up' : 'unknown'
}
