import type { AdminState, LoadScope } from './contract.js'

const RANK = { none: -1, ready: 0, drain: 1, maint: 2 } as const

/** Whether a state is at least as closed as another. `unknown` never is. */
export function atLeast(state: AdminState | 'none' | 'unknown', to: AdminState | 'none'): boolean {
  return state !== 'unknown' && RANK[state] >= RANK[to]
}

/** Whether a process has taken that state, or no client can reach the member through it any more. */
export function isInForce({ open, inForce, admin }: LoadScope, to: AdminState | 'none'): boolean {
  if (open === false) return true
  return inForce !== false && (admin === undefined || atLeast(admin, to))
}
