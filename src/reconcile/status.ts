import { readingsOf } from '../core/balancer/look/look.js'
import { loadOf } from '../core/member/claimed.js'
import { statusOf, type MemberStatus } from '../core/status.js'
import { askedOf } from '../endpoints/plan-changes.js'
import { isoOf, wallOf, type Clock } from '../provider/clock.js'
import type { MemberRef } from '../provider/contract.js'
import type { HeldBack, PlannedChange } from '../provider/desired.js'
import { refKey } from '../provider/member-ref.js'
import type { MemberDrain } from './member-drain.js'
import type { Wanted } from './work-spec.js'
import type { Work } from './work.js'

/** The status of a member that is not simply as wanted. Plain JSON, for the status of a custom resource. */
export interface ReconciledMember extends MemberStatus {
  /**
   * The wanted state: it serves, is drained, or is removed. `unknown`: the desired set says nothing about its pool.
   */
  readonly want: 'serve' | 'drain' | 'absent' | 'unknown'
  /** Why it is not as wanted, or not yet, if its own work is not the only reason; null for no reason. */
  readonly held: string | null
  /**
   * Whether the deadline of its drain has passed and it is not proved idle. The deadline does not move when a drain is
   * tried again.
   */
  readonly pastDeadline: boolean
}

/** A member that is held back, and since when for this reason. */
export interface HeldSince extends HeldBack {
  /** ISO 8601. */
  readonly since: string
}

/** What is held back now: a reason that has not changed keeps its time. */
export function heldSince(
  all: Iterable<HeldBack>,
  before: ReadonlyMap<string, HeldSince>,
  now: string,
): ReadonlyMap<string, HeldSince> {
  const held = new Map<string, HeldSince>()
  for (const one of all) {
    const key = refKey(one.ref)
    const known = before.get(key)
    held.set(key, { ...one, since: known?.reason === one.reason ? known.since : now })
  }
  return held
}

/** What a status is made of. */
interface Told {
  readonly wanted: Wanted
  readonly held: ReadonlyMap<string, HeldSince>
  readonly work: Pick<Work, 'adds' | 'drains'>
  readonly isDry: boolean
  readonly clock: Clock
}

/** A row for each member that is not simply as wanted; a later source of a row overrules the one before. */
export function rowsOf({ wanted, held, work, isDry, clock }: Told): readonly ReconciledMember[] {
  const rows = new Map<string, ReconciledMember>()
  for (const [key, { ref, reason, since, asWished }] of held)
    if (asWished !== true) rows.set(key, rowOf(wanted, ref, since, reason))
  for (const [key, { ref, change, held: why, since }] of work.adds.all) {
    const what = change.kind === 'add' ? 'add' : 'the opening of what was added'
    rows.set(key, rowOf(wanted, ref, since, why ?? `${what} is under way`))
  }
  for (const [key, drain] of work.drains)
    if (drain.state !== 'left') rows.set(key, rowOfDrain(wanted, drain, held.get(key), clock))
  const now = isoOf(clock)
  if (isDry)
    for (const [key, { change, reason }] of wanted.steps)
      rows.set(key, rowOf(wanted, change.ref, now, `dry run: would ${wordOf(change)}: ${reason}`))
  return [...rows.values()]
}

function wordOf(change: PlannedChange['change']): string {
  return change.kind === 'hold' ? `hold in ${change.to}` : change.kind
}

function rowOfDrain(
  wanted: Wanted,
  drain: MemberDrain,
  held: HeldBack | undefined,
  clock: Clock,
): ReconciledMember {
  const { ref, since, isPastDeadline: pastDeadline } = drain
  const claimed = drain.leaving ?? drain.claimed
  const now = clock.now()
  const wallOffset = wallOf(clock) - now
  const deadline = drain.deadline === null ? null : new Date(drain.deadline).toISOString()
  const times = { since, deadline, now, wallOffset }
  const status = claimed === undefined ? rowOf(wanted, ref, since, null) : statusOf(claimed, times)
  const own = drain.held ?? (waitsForWork(drain) ? AT_WORK : null)
  const reason = own ?? wanted.plan.unsaid.get(ref.pool) ?? held?.reason ?? null
  const why = [...status.why, ...drain.whyTicket]
  return { ...status, why, want: wantOf(wanted, ref), held: reason, pastDeadline }
}

/** Why a member that is to be taken out at once is still there. */
const AT_WORK = 'this balancer removes no member that has work: it goes once that has ended'

/** Whether no drain is wanted, and it is drained all the same: the product removes no member at work. */
function waitsForWork({ removal, claimed }: MemberDrain): boolean {
  if (removal === undefined || removal.isBounded || removal.ending.waits) return false
  return claimed !== undefined && loadOf(claimed) > 0
}

/** A member of which no drain is under way. */
function rowOf(
  wanted: Wanted,
  ref: MemberRef,
  since: string,
  held: string | null,
): ReconciledMember {
  const reading = readingsOf(wanted.look.snapshot).get(refKey(ref))
  const scopes = reading?.scopes.filter(({ state }) => state !== 'ended') ?? []
  const isWhole = scopes.length > 0 && scopes.every(({ state }) => state === 'read')
  const sum = (key: 'active' | 'queued'): number | null =>
    isWhole ? scopes.reduce((all, scope) => all + scope[key], 0) : null
  return {
    ref,
    phase: 'active',
    since,
    deadline: null,
    active: sum('active'),
    queued: sum('queued'),
    why: [],
    want: wantOf(wanted, ref),
    held,
    pastDeadline: false,
  }
}

function wantOf({ plan, down }: Wanted, ref: MemberRef): ReconciledMember['want'] {
  if (plan.unsaid.has(ref.pool)) return 'unknown'
  const wish = down.get(refKey(ref))
  return wish === undefined ? (plan.asked.get(ref) ?? 'serve') : askedOf(wish)
}
