import type { MemberRef } from '../provider/contract.js'
import type { Phase, Why } from '../provider/report.js'
import { readScopes, type ClaimedMember } from './member/claimed.js'
import { explain } from './member/said/why.js'

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
  claimed: ClaimedMember,
  times: {
    readonly since: string
    readonly deadline: string | null
    readonly now: number
    readonly wallOffset: number
  },
): MemberStatus {
  const { ref, claim, facts } = claimed
  const { since, deadline, now, wallOffset } = times
  const read = readScopes(claimed)
  const isWhole =
    facts.unread === null && read.length === claim.proof.scopes.size && read.length > 0
  const sum = (key: 'active' | 'queued'): number => read.reduce((all, each) => all + each[key], 0)
  return {
    ref,
    phase: claim.phase,
    since,
    deadline,
    active: isWhole ? sum('active') : null,
    queued: isWhole ? sum('queued') : null,
    why: explain(claimed, now, wallOffset),
  }
}
