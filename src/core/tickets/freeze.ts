import type { Change, LoadScope } from '../../provider/contract.js'
import { ledgerOf } from '../machine/ledger/changes.js'
import type { DrainState, Hold, ScopeTrack } from '../machine/state.js'
import { moveMoments } from './moments.js'
import { frozenSchema, STATE_FORM } from './schema.js'
import type { FrozenState, TicketChange, TicketMember } from './ticket.js'

/**
 * One member as its ticket holds it.
 *
 * @param wallOffset - epoch milliseconds minus the run's clock
 */
export function freezeMember(state: DrainState, wallOffset: number): TicketMember {
  const { ref, found, ending } = state
  const own = found?.own ?? 'unknown'
  return {
    ref,
    identity: found?.identity ?? null,
    wasAdmin: own === 'unknown' ? null : own,
    served: found?.serves ?? false,
    native: found?.native ?? null,
    changes: ledgerOf(state).map(({ kind, to, state: known, at }): TicketChange => ({
      kind,
      ...(to === null ? {} : { to }),
      state: known,
      at: new Date(at + wallOffset).toISOString(),
    })),
    outcome: ending.ended?.outcome ?? null,
    state: wholeLosses(moveMoments(frozenSchema(), plain(state) as never, wallOffset)),
  }
}

/** Whole milliseconds, as the ledger has them: which of two came first must be told by the process that reads the ticket. */
function wholeLosses(state: FrozenState): FrozenState {
  const late = state.hold.late.map((entry) => ({
    ...entry,
    lostAt: Math.floor(entry.lostAt),
    lackedAt: entry.lackedAt === null ? null : Math.floor(entry.lackedAt),
  }))
  return { ...state, hold: { ...state.hold, late } }
}

/** A reading is as old as the ticket, and what failed while it was read too: both are read anew. */
function plain(state: DrainState): FrozenState {
  const { phase, startedAt, hold, proof, vanished, ending } = state
  const { pending, late, incarnations } = hold
  const cutting = Math.max(ending.cutting, pending?.cuts ?? 0)
  return {
    v: STATE_FORM,
    phase,
    startedAt,
    hold: {
      wish: hold.wish,
      confirmed: hold.confirmed,
      intended: pending === null ? null : sent(pending.change),
      late: late.flatMap((entry) => {
        const change = sent(entry.change)
        // The process that reads the ticket has not made the call, and begins its time anew.
        const { lostAt, until, lackedAt, before, shared, refused } = entry
        const optional = {
          ...(before === undefined ? {} : { before }),
          ...(shared === undefined ? {} : { shared }),
          ...(refused === undefined ? {} : { refused }),
        }
        return change === null ? [] : [{ change, lostAt, until, lackedAt, ...optional }]
      }),
      confirmedAt: hold.confirmedAt,
      notBefore: hold.notBefore,
      losses: hold.losses,
      refusals: hold.refusals,
      incarnations: incarnations === null ? null : [...incarnations],
      overrules: hold.overrules,
      overruled: hold.overruled,
      escalated: hold.escalated,
      floor: hold.floor,
      yieldAt: hold.yieldAt,
      atMinimum: hold.atMinimum,
      refusal: refusalOf(hold),
    },
    proof: {
      scopes: [...proof.scopes.values()].map(withoutAges),
      ended: proof.ended,
      effectiveSince: proof.effectiveSince,
      inForce: proof.inForce,
      verdict:
        proof.verdict === null
          ? null
          : {
              ...proof.verdict,
              scopes: [...proof.verdict.scopes].map(([scope, mark]) => ({ scope, ...mark })),
            },
      proof: proof.proof,
      sealed: proof.sealed,
      unverified: proof.unverified,
      sealFailures: Math.min(proof.sealFailures, 1_000),
      lost: proof.lost,
      isForeign: proof.isForeign,
    },
    yielding: yieldingOf(state),
    vanished,
    holding: ending.holding,
    terminated: ending.terminated,
    terminatedAtMost: ending.terminatedAtMost,
    ...(cutting === 0 ? {} : { cutting }),
    terminateUntil: ending.terminateUntil,
  }
}

/** Ages and the reading before the newest one are for the moment; older versions would refuse a ticket that has them. */
function withoutAges(track: ScopeTrack): ScopeTrack {
  const { last, read } = track
  const { ...kept }: { -readonly [K in keyof ScopeTrack]: ScopeTrack[K] } = track
  delete kept.livedBefore
  if (last.oldest === undefined && read?.oldest === undefined) return kept
  return { ...kept, last: withoutAge(last), read: read && withoutAge(read) }
}

function withoutAge(scope: LoadScope): LoadScope {
  const { ...kept }: { -readonly [K in keyof LoadScope]: LoadScope[K] } = scope
  delete kept.oldest
  return kept
}

function refusalOf({ refusal }: Hold): FrozenState['hold']['refusal'] {
  const change = refusal === null ? null : sent(refusal.change)
  if (refusal === null || change === null) return null
  const { code, message, retryable } = refusal.error
  return { change, error: { code, message, retryable } }
}

function sent(change: Change): FrozenState['hold']['intended'] {
  return change.kind === 'add' ? null : change
}

function yieldingOf({ goal }: DrainState): FrozenState['yielding'] {
  if (goal.kind !== 'open' || goal.then === 'end') return null
  return { then: goal.then, because: goal.because?.message ?? '' }
}
