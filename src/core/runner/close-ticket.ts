import { settledWithin } from '../../provider/abort.js'
import type { DrainReport } from '../../provider/report.js'
import { stillLate } from '../machine/decide/open.js'
import { owesUndo } from '../machine/ledger/owner.js'
import { ownOf, type DrainState } from '../machine/state.js'
import { leaveTicket } from './balancer/balancer.js'
import { forgetTicket, leaveTicketBehind } from './balancer/left-tickets.js'
import { LATER_ANSWER, notKept } from '../tickets/calls.js'
import type { RunState } from './run-state.js'

/** Called at the end of a run: deletes a ticket with nothing left to undo. */
export async function closeTicket(run: RunState, report: DrainReport): Promise<void> {
  const { states, spec, sender } = run
  const owes = states.some((state) => state.phase !== 'removed' && owesStill(state))
  const over = spec.side === 'open' || report.outcome === 'refused' || report.outcome === 'gone'
  // A held member can still be changed: put back, or sealed.
  const holds = states.some(({ ending }) => ending.holding)
  const gone = states.every((state) => state.phase === 'removed')
  const drop = gone || (over && !owes && !holds)
  if (!drop) leaveTicketOpen(run)
  const written = drop ? dropUnlessKept(run) : sender?.save()
  await settledWithin(written ?? Promise.resolve(), spec.clock, LATER_ANSWER)
}

/** Called at the end of an undo: keeps the ticket if something could not be undone. */
export async function closeUndone(run: RunState): Promise<void> {
  const { states, spec, sender } = run
  const owes = states.some(
    (state) => state.phase !== 'removed' && (owesStill(state) || state.ending.ended?.error != null),
  )
  const written = owes ? sender?.save() : dropUnlessKept(run)
  await settledWithin(written ?? Promise.resolve(), spec.clock, LATER_ANSWER)
}

/** The ticket stays: it is deleted once `ready()` has opened all its members. */
export function leaveTicketOpen(run: RunState): void {
  const { keeper, spec, states } = run
  if (keeper?.kept !== true || keeper.closed || spec.side !== 'drain') return
  const drop = (): Promise<void> => dropUnlessKept(run) ?? Promise.resolve()
  leaveTicketBehind(
    spec.provider,
    keeper.head.id,
    states.map(({ ref }) => ref),
    { by: keeper, drop },
  )
}

/**
 * Deletes the ticket, unless another run of this process continues it for other members, or for its later changes.
 */
function dropUnlessKept(run: RunState): Promise<void> | undefined {
  const { keeper, spec } = run
  if (keeper !== undefined) forgetTicket(spec.provider, keeper.head.id)
  if (keeper === undefined) return undefined
  if (!leaveTicket(spec.provider, keeper.head.id)) return dropTicket(run)
  keeper.yield()
  return keeper.written()
}

/** If the ticket can't be deleted, it stays and is found as an orphan. */
async function dropTicket(run: RunState): Promise<void> {
  try {
    await run.keeper?.drop(LATER_ANSWER)
  } catch (cause) {
    run.fault(notKept('deleted', cause))
  }
}

/**
 * Whether any change of ours is left after an undo. An unanswered change that leads to the member's present state
 * does not count: a ticket kept for it would stay for ever, because no undo waits for it.
 */
function owesStill(state: DrainState): boolean {
  const { changes, pending } = state.hold
  const isBack = state.ending.ended?.outcome === 'restored' && changes.length === 0
  return isBack && pending === null ? stillLate(state, ownOf(state)) : owesUndo(state)
}

/** Called at a release: writes a complete ticket, because the process can end next. */
export async function flushTicket({ keeper, spec }: RunState): Promise<void> {
  if (keeper?.kept === true) await settledWithin(keeper.written(), spec.clock, LATER_ANSWER)
}

/** Called when another run continues the ticket: waits for this run's writes, and prevents later ones. */
export async function handOverTicket({ keeper, spec }: RunState): Promise<void> {
  if (keeper !== undefined) await settledWithin(keeper.handOver(), spec.clock, LATER_ANSWER)
}
