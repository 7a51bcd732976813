import type { DrainReport } from '../../provider/report.js'
import { stillLate } from '../machine/decide/open.js'
import { owesUndo } from '../machine/ledger/owner.js'
import { ownOf, type DrainState } from '../machine/state.js'
import { leaveTicket } from './balancer/balancer.js'
import { settledWithin, STORE_LIMIT } from './look/call.js'
import type { RunState } from './run-state.js'

/** At the end of a run: a ticket with nothing left to undo is not kept. */
export async function closeTicket(run: RunState, report: DrainReport): Promise<void> {
  const { states, spec, sender } = run
  const owes = states.some((state) => state.phase !== 'removed' && owesStill(state))
  const over = spec.side === 'open' || report.outcome === 'refused' || report.outcome === 'gone'
  // What is still held may be changed again: put back, or sealed.
  const holds = states.some(({ ending }) => ending.holding)
  const gone = states.every((state) => state.phase === 'removed')
  const drop = gone || (over && !owes && !holds)
  const written = drop ? dropUnlessKept(run) : sender?.save()
  // Where it can't be dropped it stays, and is found as an orphan.
  await settledWithin(written ?? Promise.resolve(), spec.clock, STORE_LIMIT)
}

/** At the end of an undo: the ticket is kept where something could not be undone. */
export async function closeUndone(run: RunState): Promise<void> {
  const { states, spec, sender } = run
  const owes = states.some(
    (state) => state.phase !== 'removed' && (owesStill(state) || state.ending.ended?.error != null),
  )
  const written = owes ? sender?.save() : dropUnlessKept(run)
  await settledWithin(written ?? Promise.resolve(), spec.clock, STORE_LIMIT)
}

/** Forgets the ticket, unless another run of this process goes on with it for other members, or for what it did since. */
function dropUnlessKept({ keeper, spec }: RunState): Promise<void> | undefined {
  if (keeper === undefined || !leaveTicket(spec.provider, keeper.head.id)) return keeper?.drop()
  keeper.yield()
  return keeper.written()
}

/**
 * Whether anything is left of ours after an undo. A change without an answer that leads to where the member is
 * takes nothing away: a ticket that was kept for it would stay for ever, because no undo waits for it.
 */
function owesStill(state: DrainState): boolean {
  const { changes, pending } = state.hold
  const isBack = state.ending.ended?.outcome === 'restored' && changes.length === 0
  return isBack && pending === null ? stillLate(state, ownOf(state)) : owesUndo(state)
}

/** At a release: whoever ends the process next leaves a ticket that knows all that was done. */
export async function flushTicket({ keeper, spec }: RunState): Promise<void> {
  if (keeper?.kept === true) await settledWithin(keeper.written(), spec.clock, STORE_LIMIT)
}

/** Another run goes on with the ticket: what was written is there by then, and nothing of this one comes after it. */
export async function handOverTicket({ keeper, spec }: RunState): Promise<void> {
  if (keeper !== undefined) await settledWithin(keeper.handOver(), spec.clock, STORE_LIMIT)
}
