import type {
  AdminState,
  Change,
  LoadScope,
  PresentReading,
  Reading,
} from '../../provider/contract.js'
import { DrainableError } from '../../provider/error.js'
import { formatRef, isSameIdentity } from '../../provider/member-ref.js'
import type { Goal } from '../member/wanted.js'
import type { Left } from '../member/input.js'
import {
  type Claim,
  emptyLedger,
  type LateChange,
  type Ledger,
  NO_ENDING,
  NO_PROOF,
  type ScopeTrack,
} from '../member/record.js'
import type { ClaimedMember } from '../member/claimed.js'
import { lacksEffect } from '../member/whose.js'
import type { TicketMember } from './ticket.js'

/** @param wallOffset - epoch milliseconds minus the balancer's clock */
export function toTicketMember(
  { ref, claim, ledger }: ClaimedMember,
  wallOffset: number,
): TicketMember {
  const { found, set, earlier, doubted, pending, late } = ledger
  const { proof, ending } = claim
  return {
    ref: { ...ref },
    found,
    set,
    earlier,
    doubted: [...doubted, ...notByIntended(ledger).filter((one) => !doubted.includes(one))],
    intended: pending === null ? null : sent(pending.change),
    late: late.flatMap(({ change }) => sent(change) ?? []),
    told: ledger.told === null ? null : [...ledger.told],
    processes: [...proof.scopes.values()].map(({ last, read }) => ({
      name: last.scope,
      incarnation: read?.incarnation ?? '',
      work: read === null ? 0 : read.active + read.queued,
    })),
    phase: claim.phase,
    startedAt: new Date(claim.startedAt + wallOffset).toISOString(),
    wish: claim.wish,
    confirmed: claim.confirmed,
    held: claim.held,
    holding: ending.holding,
    floor: claim.floor,
    atMinimum: claim.atMinimum,
    overrules: claim.overrules,
    escalated: claim.escalated,
    terminated: ending.terminated,
    terminatedAtMost: ending.terminatedAtMost,
    lost: proof.lost,
    outcome: ending.ended?.outcome ?? null,
  }
}

/**
 * A state that was there before the change that is intended: for who reads the ticket that change may have led there, and did
 * not.
 */
function notByIntended({ pending, set, found }: Ledger): readonly AdminState[] {
  if (pending?.change.kind !== 'hold' || pending.before === 'unknown') return []
  const { to } = pending.change
  const isNew = lacksEffect(pending.change, pending.before) || to === set || to === found?.own
  return isNew ? [] : [to]
}

function sent(change: Change): Exclude<Change, { kind: 'add' }> | null {
  return change.kind === 'add' ? null : change
}

/** What a claim is laid for that goes on from a ticket. */
export interface FromTicket {
  /** Now, by the balancer's clock. */
  readonly now: number
  readonly wallOffset: number
  readonly goal: Goal
  readonly deadline: number | null
  /** Whether it is one of several steps: what one of them was refused is not asked for again by the next. */
  readonly isStep?: boolean
}

type Resumed = Omit<Partial<Claim>, 'policy'> & Pick<Claim, 'goal' | 'deadline' | 'startedAt'>

/** A member's claim and ledger for a call that goes on with a ticket, or undoes it. Its proof begins anew. */
export function fromTicketMember(
  member: TicketMember,
  { now, wallOffset, goal, deadline, isStep = false }: FromTicket,
): { readonly claim: Resumed; readonly left: Left } {
  const { wish, confirmed, held, escalated, overrules, atMinimum, floor, lost, phase } = member
  const isDown = goal.kind === 'drain'
  const startedAt = Math.min(Date.parse(member.startedAt) - wallOffset, now)
  const over = isDown && isOver(member, isStep) ? endedBefore(member, now) : null
  const { terminated, terminatedAtMost, outcome } = member
  return {
    claim: {
      goal: goal.kind === 'open' ? { ...goal, isTheirs: outcome === 'overruled' } : goal,
      deadline,
      startedAt,
      phase: phase === 'idle' || (phase === 'removed' && !isDown) ? 'draining' : phase,
      // What was wished above the level in place is decided anew, from a proof of this process.
      ...(isDown ? { wish: confirmed === 'none' ? wish : confirmed, confirmed, held } : {}),
      ...(isDown ? { escalated, overrules, atMinimum, floor: placeOf(member, floor) } : {}),
      overruled: over?.ended?.outcome === 'overruled',
      proof: { ...NO_PROOF, scopes: tracksOf(member, now), lost },
      ending: { ...NO_ENDING, ...over, terminated, terminatedAtMost },
    },
    left: leftOf(member, now),
  }
}

/** The ledger of a member in a ticket. Lost changes begin their time anew. */
export function leftOf(member: TicketMember, now: number): Left {
  const { found, set, earlier, doubted, intended, late, told } = member
  const sentBefore = [...late, ...(intended === null ? [] : [intended])]
  return {
    ledger: {
      ...emptyLedger(now),
      found,
      set,
      earlier,
      told: told === null ? null : new Map(told),
      doubted,
      late: sentBefore.map((one) => lateFrom(one, now)),
    },
  }
}

/** A look that is asked for in this moment counts. */
function lateFrom(change: Change, now: number): LateChange {
  return { change, lostAt: now - 1, until: null, lacked: null }
}

/**
 * A first hold that was not seen carried out asks for its place again: others may have gone since, or taken it while no call
 * of this drain was there.
 */
function placeOf({ confirmed, held }: TicketMember, floor: Claim['floor']): Claim['floor'] {
  const isSure = held || confirmed !== 'none'
  return isSure ? floor : 'unasked'
}

/** Whether the drain of a member is over for whoever goes on with its ticket: it is not judged, nor asked for, again. */
function isOver({ outcome, holding, phase }: TicketMember, isStep: boolean): boolean {
  if (phase === 'removed' || outcome === 'overruled' || outcome === 'gone') return true
  return isStep && outcome === 'refused' && !holding
}

/** Why a member is left alone by whoever goes on with its ticket. */
const BEFORE = {
  gone: [
    'MEMBER_GONE',
    'was no longer in the pool, or was another member, when this drain was resumed',
  ],
  overruled: ['DRAIN_OVERRULED', 'was overruled before this drain was resumed; it was left alone'],
} as const

/** What it was let go of as. Nothing leaves `removed`, and what another client has opened stays open, also after a reload. */
function endedBefore(
  { ref, outcome }: TicketMember,
  at: number,
): Pick<Claim['ending'], 'ended' | 'holding'> {
  let error: DrainableError | null = null
  if (outcome === 'gone' || outcome === 'overruled') {
    const [code, words] = BEFORE[outcome]
    error = new DrainableError(code, `${formatRef(ref)} ${words}`, { ref })
  }
  return { ended: { outcome: outcome ?? 'removed', at, error }, holding: false }
}

/** Every process of then must be read, or have ended, before idle is said. */
function tracksOf({ processes }: TicketMember, now: number): ReadonlyMap<string, ScopeTrack> {
  return new Map(
    processes.map(({ name, incarnation, work }) => {
      const read: LoadScope = {
        scope: name,
        incarnation,
        state: 'read',
        sampledAt: now,
        active: work,
        queued: 0,
      }
      const track: ScopeTrack = {
        last: { ...read, state: 'unread' },
        read: incarnation === '' ? null : read,
        quietFrom: now,
        livedFrom: null,
        stalled: 0,
        zeros: null,
        arrivalsAtEffect: null,
        steadySince: now,
      }
      return [name, track]
    }),
  )
}

/** What a ticket still owes a member. */
export interface Owed {
  readonly member: TicketMember
  /** The own state that it was found in. */
  readonly own: AdminState | 'unknown'
  /** Whether it is held; else only a change of ours may still be carried out. */
  readonly held: boolean
}

/** Whether the member that is there is the one of the ticket. */
export function isSame({ found }: TicketMember, reading: PresentReading): boolean {
  return found !== null && isSameIdentity(found.identity, reading.identity)
}

/** Whether a change of ours may be on a member, or may still come, as far as its ticket tells. */
export function mayOwe(member: TicketMember): boolean {
  return member.intended !== null || member.late.length > 0 || isChanged(member)
}

function isChanged({ set, earlier, doubted }: TicketMember): boolean {
  return set !== null || earlier.length > 0 || doubted.length > 0
}

/**
 * What a ticket owes a member as it is found: the undo of a hold that is there, or that may be carried out yet. On an open
 * member there is none, whatever state it was found in: another client opened it, and an undo leaves it alone.
 */
export function owedOf(member: TicketMember, reading: Reading): Owed | undefined {
  if (!reading.present || !isSame(member, reading)) return undefined
  const { own } = reading
  const held = own !== 'ready' && own !== member.found?.own && isChanged(member)
  const mayCome = member.intended !== null || member.late.length > 0
  return held || mayCome ? { member, own, held } : undefined
}
