import type { MemberRef } from '../provider/contract.js'
import type { Phase, Why } from '../provider/report.js'
import type { MachinePolicy } from './machine/policy.js'
import { readScopes, type DrainState } from './machine/state.js'
import { explain } from './machine/why.js'

/** The status of a member, for a live view or the status of a custom resource. Plain JSON. */
export interface MemberStatus {
  readonly ref: MemberRef
  readonly phase: Phase
  /** Since when it has this status, ISO 8601. */
  readonly since: string
  /** The deadline, ISO 8601; null for none. */
  readonly deadline: string | null
  /** In flight in all processes; null if one of them can't be read. */
  readonly active: number | null
  /** Queued for it in all processes; null if one of them can't be read. */
  readonly queued: number | null
  /** Why it is not idle, or not verified; the first reason is the most important one. */
  readonly why: readonly Why[]
}

/** The status of a member by its newest reading. */
export function statusOf(
  state: DrainState,
  policy: MachinePolicy,
  times: {
    readonly since: string
    readonly deadline: string | null
    readonly now: number
    readonly wallOffset: number
  },
): MemberStatus {
  const { since, deadline, now, wallOffset } = times
  const read = readScopes(state)
  const whole = state.unread === null && read.length === state.proof.scopes.size && read.length > 0
  const sum = (key: 'active' | 'queued'): number => read.reduce((all, each) => all + each[key], 0)
  return {
    ref: state.ref,
    phase: state.phase,
    since,
    deadline,
    active: whole ? sum('active') : null,
    queued: whole ? sum('queued') : null,
    why: explain(state, policy, now, wallOffset),
  }
}
