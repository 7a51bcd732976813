import type { Clock } from '../../provider/clock.js'
import type { Change } from '../../provider/contract.js'
import { DrainableError } from '../../provider/error.js'
import { formatRef } from '../../provider/member-ref.js'
import { targetOf } from '../machine/ledger/changes.js'
import { openGoal, UNDO_LIMIT, type Goal, type OpenGoal } from '../machine/goal.js'
import {
  NO_ENDING,
  NO_PROOF,
  type DrainState,
  type EndingState,
  type FoundMember,
  type Hold,
  type LateChange,
  type OwnChange,
  type ScopeTrack,
} from '../machine/state.js'
import { stampOf } from './host.js'
import { moveMoments } from './moments.js'
import { frozenSchema } from './schema.js'
import type { FrozenState, Ticket, TicketMember } from './ticket.js'

/** Wall time and uptime may differ by that much over a gap and still agree, in milliseconds. */
const AGREE = 1_000

/** How much time passed since a ticket was written. */
export interface Gap {
  /** Milliseconds that count as passed. */
  readonly ms: number
  /** Whether another boot wrote it: only wall time says how long ago that was. */
  readonly foreign: boolean
}

/**
 * How much of the time since a ticket was written counts as passed: as far as the uptime of one boot
 * and wall time agree. A wall clock that jumped counts nothing; on another boot there is only wall time.
 */
export function gapSince(saved: Ticket['saved'], clock: Clock): Gap {
  const now = stampOf(clock)
  const wall = now.wall - saved.wall
  if (now.boot !== saved.boot) return { ms: Math.max(0, wall), foreign: true }
  const up = (now.uptime - saved.uptime) * 1_000
  const agree = Math.abs(wall - up) <= AGREE
  return { ms: agree ? Math.max(0, Math.min(wall, up)) : 0, foreign: false }
}

/** What a member's state is thawed for. */
export interface ThawOptions {
  /** Now, by the run's clock. */
  readonly now: number
  readonly wallOffset: number
  readonly goal: Goal
  readonly deadline: number | null
  /** See {@link sinceSaved}; without it a lost change is waited for anew. */
  readonly since?: Since
}

/** When a ticket was written, and how much of the time since counts. */
interface Since {
  readonly saved: Ticket['saved']
  readonly gap: Gap
}

export function sinceSaved(saved: Ticket['saved'], clock: Clock): Since {
  return { saved, gap: gapSince(saved, clock) }
}

/**
 * The state of a member for a run that goes on in another process, or undoes: the ledger and what may
 * still be carried out, no proof. It starts from draining.
 */
export function thawMember(member: TicketMember, options: ThawOptions): DrainState {
  const { now, wallOffset } = options
  const frozen = moveMoments(frozenSchema(), member.state as never, -wallOffset) as FrozenState
  const { hold } = frozen
  const state = base(member, frozen, options)
  const started = Math.min(frozen.startedAt, now)
  const removed = removedAlready(member, frozen, options)
  return {
    ...state,
    startedAt: started,
    phase: removed !== null ? 'removed' : frozen.phase === 'active' ? 'active' : 'draining',
    hold: {
      ...state.hold,
      // What was wished above the confirmed state is decided anew, from a proof of this process.
      wish: hold.confirmed === 'none' ? hold.wish : hold.confirmed,
      confirmedAt: now - 1,
      floor: placeOf(hold),
      notBefore: now,
      losses: 0,
      refusals: 0,
      overruled: false,
      yieldAt: null,
      late: state.hold.late.map((late) => ({
        ...late,
        lostAt: Math.min(late.lostAt, now),
        // A refusal is an answer: what it may have left half done shows in the next look.
        until: late.refused === true ? now : untilStill(late.until, options),
        lackedAt: null,
      })),
    },
    proof: {
      ...NO_PROOF,
      scopes: new Map(frozen.proof.scopes.map((track) => [track.last.scope, restart(track, now)])),
      ended: frozen.proof.ended,
      lost: frozen.proof.lost,
    },
    ending: {
      ...NO_ENDING,
      ...removed,
      terminated: frozen.terminated,
      terminatedAtMost: frozen.terminatedAtMost,
      cutting: frozen.cutting ?? 0,
    },
  }
}

/**
 * A first hold that was not seen carried out asks for its place again: others may have gone since, or taken it while no run
 * of this drain was there.
 */
function placeOf({ confirmed, floor }: Pick<Hold, 'confirmed' | 'floor'>): Hold['floor'] {
  return confirmed === 'none' && floor === 'granted' ? 'unasked' : floor
}

/** Nothing leaves `removed`: a drain that goes on does not look for a member that ended so before. */
function removedAlready(
  { ref, outcome }: TicketMember,
  { phase }: FrozenState,
  { goal, now }: ThawOptions,
): Pick<EndingState, 'ended' | 'holding'> | null {
  if (phase !== 'removed' || goal.kind !== 'drain') return null
  const words = `${formatRef(ref)} was no longer in the pool, or was another member, when this drain was resumed`
  const error = outcome === 'gone' ? new DrainableError('MEMBER_GONE', words, { ref }) : null
  return { ended: { outcome: outcome ?? 'removed', at: now, error }, holding: false }
}

/** What the steps before have let go of is over for this drain: it is not judged, nor said, again. */
function letGoAlready(
  member: TicketMember,
  frozen: FrozenState,
  options: ThawOptions,
): Pick<EndingState, 'ended' | 'holding'> | null {
  const { outcome } = member
  if (frozen.holding || outcome === null) return removedAlready(member, frozen, options)
  const at = Math.max(options.now, frozen.startedAt)
  return (
    removedAlready(member, frozen, options) ?? {
      ended: { outcome, at, error: null },
      holding: false,
    }
  )
}

/**
 * The state of a member for the next step of a drain: everything, the quiet time included, as far as
 * the gap counts.
 */
export function thawStep(
  member: TicketMember,
  saved: Ticket['saved'],
  gap: Gap,
  options: ThawOptions,
): DrainState {
  const shift = options.now - gap.ms - saved.wall
  const frozen = moveMoments(frozenSchema(), member.state as never, shift) as FrozenState
  // The ledger moves as the rest does: its order says what was confirmed since an answer was lost.
  const state = base(member, frozen, { ...options, wallOffset: -shift }, true)
  const { verdict } = frozen.proof
  return {
    ...state,
    goal: yieldingGoal(member, frozen, options) ?? state.goal,
    vanished:
      frozen.vanished === null
        ? null
        : { ...frozen.vanished, since: Math.min(frozen.vanished.since, options.now) },
    hold: {
      ...state.hold,
      ...pastMoments(state.hold, options.now, gap),
      floor: placeOf(state.hold),
      refusal: thawRefusal(member, frozen),
    },
    proof: {
      ...frozen.proof,
      // What two machines call the same moment may be far apart, and stays so for every step after this one.
      isForeign: frozen.proof.isForeign || gap.foreign,
      effectiveSince: earlier(frozen.proof.effectiveSince, options.now),
      scopes: new Map(
        frozen.proof.scopes.map((track) => [track.last.scope, untilNow(track, options.now)]),
      ),
      // Another machine's clock does not say whether what is read now is younger than the seal: proved anew.
      verdict:
        verdict === null || verdict.at > options.now || (gap.foreign && isSealing(frozen))
          ? null
          : {
              ...verdict,
              scopes: new Map(verdict.scopes.map(({ scope, ...mark }) => [scope, mark])),
            },
    },
    ending: {
      ...NO_ENDING,
      ...letGoAlready(member, frozen, options),
      terminated: frozen.terminated,
      terminatedAtMost: frozen.terminatedAtMost,
      cutting: frozen.cutting ?? 0,
      terminateUntil: earlier(frozen.terminateUntil, options.now + LONGEST_CUT),
    },
  }
}

/** Whether the door was closed over a verdict, and nothing has shown yet that it still stood then. */
function isSealing({ proof: { verdict }, phase }: FrozenState): boolean {
  return verdict !== null && verdict.sealedAt !== null && phase === 'draining'
}

/** No wait that a step leaves behind is longer than that, in milliseconds. */
const LONGEST_WAIT = 5_000
/** How long what was cut may take to show at most, in milliseconds. */
const LONGEST_CUT = 600_000

function earlier(at: number | null, bound: number): number | null {
  return at === null ? null : Math.min(at, bound)
}

/** What is past for sure is not in the future, whatever a damaged ticket or a clock that went back says. */
function pastMoments(
  hold: Hold,
  now: number,
  gap: Gap,
): Pick<Hold, 'confirmedAt' | 'notBefore' | 'yieldAt' | 'late'> {
  return {
    confirmedAt: Math.min(hold.confirmedAt, now),
    notBefore: Math.min(hold.notBefore, now + LONGEST_WAIT),
    yieldAt: earlier(hold.yieldAt, now + LONGEST_WAIT),
    late: hold.late.map((late) => ({
      ...late,
      lostAt: Math.min(late.lostAt, now),
      until: lateUntil(late.until, now, gap),
      lackedAt: earlier(late.lackedAt, now),
    })),
  }
}

/** A proof that knows of a moment to come is none, see {@link pastMoments}. */
function untilNow(track: ScopeTrack, now: number): ScopeTrack {
  const { quietFrom, steadySince, zeros } = track
  const newest = Math.max(quietFrom, steadySince, zeros?.last.sampledAt ?? quietFrom)
  return newest > now ? restart(track, now) : track
}

/** What was refused for good stays so for the steps of one drain; a resume asks again. */
function thawRefusal({ ref }: TicketMember, { hold: { refusal } }: FrozenState): Hold['refusal'] {
  if (refusal === null) return null
  const { code, message, retryable } = refusal.error
  const change = refusal.change as Change
  return { change, error: new DrainableError(code, message, { ref, retryable }) }
}

/**
 * Until when a change may still be carried out. On another boot only wall time says how much of that has
 * passed, and two machines may differ by more than the whole of it: none has.
 */
function lateUntil(until: number | null, now: number, { foreign, ms }: Gap): number | null {
  if (until === null) return null
  const moment = foreign ? until + ms : until
  return moment > now + LONGEST_CUT ? null : moment
}

/** The same for a run that goes on: what another boot says of it is not asked. */
function untilStill(until: number | null, { now, wallOffset, since }: ThawOptions): number | null {
  if (until === null || since === undefined || since.gap.foreign) return null
  const { saved, gap } = since
  return lateUntil(until + wallOffset + now - gap.ms - saved.wall, now, gap)
}

/** A change that may have been sent before now; a look that is asked for in this moment counts. */
function lateFrom(change: Change, now: number): LateChange {
  return { change, lostAt: now - 1, until: null, lackedAt: null }
}

/** The undo of a hold that left too few serving goes on. */
function yieldingGoal(
  { ref }: TicketMember,
  { yielding }: FrozenState,
  { now }: ThawOptions,
): OpenGoal | undefined {
  if (yielding === null) return undefined
  const { then, because } = yielding
  return openGoal({
    of: 'ours',
    until: now + UNDO_LIMIT,
    lateUntil: null,
    then,
    because: new DrainableError('POOL_AT_MINIMUM', because, { ref }),
  })
}

/** A scope whose quiet time begins now, by this process's own clock. */
export function restart(track: ScopeTrack, now: number): ScopeTrack {
  return {
    ...track,
    quietFrom: now,
    livedFrom: null,
    stalled: 0,
    zeros: null,
    arrivalsAtEffect: null,
    steadySince: now,
  }
}

function base(
  member: TicketMember,
  frozen: FrozenState,
  options: ThawOptions,
  announced = false,
): DrainState {
  const { now, goal, deadline } = options
  const { hold } = frozen
  const late: LateChange[] = hold.late as LateChange[]
  // What the last step only announced may have been sent by a step that crashed. Of a cut or a removal
  // that makes no difference: the next look shows what is left.
  const harmless =
    announced && (hold.intended?.kind === 'remove' || hold.intended?.kind === 'terminate')
  const all = hold.intended === null || harmless ? late : [...late, lateFrom(hold.intended, now)]
  const kept: Hold = {
    ...withoutIntended(hold),
    changes: settledChanges(member, all, options.wallOffset),
    pending: null,
    late: all,
    loss: null,
    refusal: null,
    incarnations: hold.incarnations === null ? null : new Map(hold.incarnations),
  }
  return {
    ref: member.ref,
    goal,
    phase: frozen.phase,
    startedAt: frozen.startedAt,
    deadline,
    found: foundOf(member),
    last: null,
    unread: null,
    vanished: null,
    sighted: null,
    hold: kept,
    proof: NO_PROOF,
    ending: NO_ENDING,
    said: null,
  }
}

/** The ledger without what is only on its way. */
export function settledChanges(
  member: TicketMember,
  late: readonly LateChange[],
  wallOffset: number,
): readonly OwnChange[] {
  return member.changes.flatMap(({ kind, to = null, state, at }): OwnChange[] => {
    const underWay =
      state === 'intended' &&
      late.some(({ change }) => change.kind === kind && targetOf(change) === to)
    return underWay ? [] : [{ kind, to, state, at: Date.parse(at) - wallOffset }]
  })
}

/** The member as the first run found it. */
export function foundOf(member: TicketMember): FoundMember | null {
  const { identity, wasAdmin, served, native } = member
  if (identity === null) return null
  return { identity, own: wasAdmin ?? 'unknown', serves: served, native }
}

/** What is on its way is among the late changes from now on. */
function withoutIntended(hold: FrozenState['hold']): Omit<FrozenState['hold'], 'intended'> {
  const copy: Partial<typeof hold> & Omit<typeof hold, 'intended'> = { ...hold }
  delete (copy as { intended?: unknown }).intended
  return copy
}
