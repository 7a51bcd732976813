import type { Drain, Orphan, Ticket, TicketStore } from '../../index.js'
import { DrainableError } from '../../provider/error.js'
import type { MemberRef } from '../../provider/contract.js'
import { combinedOf } from '../../core/combined.js'
import { quote } from '../../provider/quote.js'
import type { DrainReport, RollReport } from '../../provider/report.js'
import { endedWell, type Ended } from '../child.js'
import { EXIT, exitOfDrain, exitOfRoll } from '../exit-code.js'
import type { ElsewhereData, ErrorData, OrphanData, Result } from '../result.js'
import type { Session } from '../session.js'
import { elsewhereWords } from '../words/elsewhere.js'
import { lineKey } from '../words/event.js'
import { balancerOf, failed, ticketLeft } from './ending.js'
import { addressOf, commandFailed, runHeld } from './held.js'
import { actBy } from './roll.js'

/** `orphans BALANCER`: drains that no process of this machine continues. */
export async function orphansVerb(session: Session): Promise<Result> {
  const verb = 'orphans'
  const balancer = balancerOf(session)
  try {
    const elsewhere: ElsewhereData[] = []
    const found = await orphansOf(session, elsewhere)
    const orphans = found.map(({ ticket, owner, members }): OrphanData => {
      const { id, startedAt, deadline, roll } = ticket
      const kind = roll === undefined ? 'drain' : 'roll'
      return { ticket: id, kind, startedAt, deadline, owner, members }
    })
    return {
      verb,
      exitCode: EXIT.ok,
      balancer,
      orphans,
      ...(elsewhere.length === 0 ? {} : { elsewhere }),
    }
  } catch (error) {
    return { verb, balancer, ...failed(error) }
  }
}

/** `restore BALANCER [TICKET]`: undoes what a ticket says, and nothing else. */
export async function restoreVerb(session: Session, id: string | undefined): Promise<Result> {
  const { provider, printer, signal } = session
  const verb = 'restore'
  const balancer = balancerOf(session)
  try {
    const { restore } = await import('../../index.js')
    const { ticket, tickets } = await ticketOf(session, id)
    const onEvent = printer.event.bind(printer)
    const report = await restore(provider, ticket, { tickets, signal, onEvent })
    const exitCode = exitOfDrain(report)
    const left = await ticketLeft(session, ticket.id)
    return { verb, exitCode, balancer, ...left, report, ...errorIn(report, exitCode) }
  } catch (error) {
    return { verb, balancer, ...failed(error) }
  }
}

/** `resume BALANCER [TICKET] [-- COMMAND]`: goes on with a drain or a roll whose process is gone. */
export async function resumeVerb(
  session: Session,
  id: string | undefined,
  command: readonly string[],
): Promise<Result> {
  const balancer = balancerOf(session)
  try {
    const found = await ticketOf(session, id)
    return found.ticket.roll === undefined
      ? await resumeDrainOf(session, found, command)
      : await resumeRollOf(session, found, command)
  } catch (error) {
    return { verb: 'resume', balancer, changed: false, ...failed(error) }
  }
}

interface Found {
  readonly ticket: Ticket
  readonly tickets: TicketStore
}

async function resumeRollOf(
  session: Session,
  { ticket, tickets }: Found,
  command: readonly string[],
): Promise<Result> {
  const { provider, printer, signal } = session
  if (command.length === 0)
    throw new DrainableError(
      'INVALID_OPTIONS',
      `ticket '${quote(ticket.id)}' is that of a roll: give its COMMAND once more, after --`,
    )
  const { resumeRoll } = await import('../../index.js')
  await using handle = resumeRoll(provider, ticket, {
    tickets,
    signal,
    act: actBy(session, command),
    onEvent: (event) => printer.event(event),
  })
  const roll: RollReport = await handle.done
  const base = { verb: 'resume', balancer: balancerOf(session), roll } as const
  const left = await ticketLeft(session, ticket.id)
  if (signal.aborted) return { ...base, ...left, ...failed(signal.reason) }
  const words = roll.error === undefined ? {} : { error: failed(roll.error).error }
  return { ...base, ...left, exitCode: exitOfRoll(roll), ...words }
}

async function resumeDrainOf(
  session: Session,
  { ticket, tickets }: Found,
  command: readonly string[],
): Promise<Result> {
  const { provider, printer, signal } = session
  const { resumeDrain } = await import('../../index.js')
  await using handle = resumeDrain(provider, ticket, {
    tickets,
    signal,
    onEvent: (event) => printer.event(event),
  })
  const report = await handle.done
  const base = { verb: 'resume', changed: true, balancer: balancerOf(session), report } as const
  const end = await finish(session, handle, report, command).catch(failed)
  return { ...base, ...(await ticketLeft(session, ticket.id)), ...end }
}

type DrainEnd = {
  readonly exitCode: number
  readonly error?: ErrorData
  readonly command?: Ended
  readonly report?: DrainReport
}

/** Runs COMMAND while the resumed drain is held, and undoes the drain; without COMMAND the member stays drained. */
async function finish(
  session: Session,
  handle: Drain,
  report: DrainReport,
  command: readonly string[],
): Promise<DrainEnd> {
  session.signal.throwIfAborted()
  const goesOn = ['idle', 'removed', 'terminated', 'proceeded'].includes(report.outcome)
  const exitCode = exitOfDrain(report)
  if (!goesOn) return { exitCode, ...errorIn(report, exitCode) }
  if (command.length === 0) return { exitCode }
  const lost = lostOf(handle)
  const refs = report.members.map(({ ref }) => ref)
  const ended = await runHeld(session, command, {
    refs,
    address: addressOf(report),
    signal: AbortSignal.any([session.signal, lost]),
  })
  if (session.signal.aborted) return { command: ended, ...failed(session.signal.reason) }
  if (lost.aborted) return { command: ended, ...failed(lost.reason) }
  if (!endedWell(ended))
    return { exitCode: EXIT.command, command: ended, error: commandFailed(ended) }
  const opened = await handle.restore()
  const code = exitOfDrain(opened)
  return {
    exitCode: code === EXIT.ok ? exitCode : code,
    command: ended,
    report: opened,
    ...errorIn(opened, code),
  }
}

/** Fires when work is seen on a member that was reported idle, or another client opens it. */
function lostOf(handle: Drain): AbortSignal {
  const lost = new AbortController()
  handle.on('idle-lost', ({ ref }) =>
    lost.abort(new DrainableError('IDLE_LOST', `work was seen on ${lineKey(ref)}`, { ref })),
  )
  handle.on('overruled', ({ ref, expected, found, reset }) => {
    const words = `another client set ${lineKey(ref)} to ${found}, expected ${expected}`
    if (!reset) lost.abort(new DrainableError('DRAIN_OVERRULED', words, { ref }))
  })
  return lost.signal
}

function errorIn(report: DrainReport, exitCode: number): { readonly error?: ErrorData } {
  const error = report.error ?? report.members.find((member) => member.error)?.error
  return exitCode === EXIT.ok || error === undefined ? {} : { error: failed(error).error }
}

/**
 * Deletes the tickets of ended processes that owe nothing any more, because these members were just made ready. Who
 * closes such a member later would otherwise be taken for the drain of the ticket.
 */
export async function dropSettled(
  session: Session,
  opened: readonly { readonly ref: Orphan['members'][number]['ref'] }[],
): Promise<void> {
  const { tickets, printer } = session
  if (tickets === undefined) return
  const names = new Set(opened.map(({ ref }) => lineKey(ref)))
  const isSettled = ({ ticket, owner, members }: Orphan): boolean =>
    ticket.roll === undefined &&
    owner.state === 'gone' &&
    members.every(({ ref, owes }) => !owes && names.has(lineKey(ref)))
  try {
    const settled = (await orphansOf(session)).filter(isSettled)
    for (const { ticket } of settled) await tickets.delete(ticket.id)
  } catch (error) {
    // The members are ready nevertheless.
    printer.say(`tickets: ${failed(error).error.message}`)
  }
}

async function orphansOf(
  session: Session,
  elsewhere: ElsewhereData[] = [],
): Promise<readonly Orphan[]> {
  const { provider, signal, printer } = session
  const { findOrphans } = await import('../../index.js')
  return findOrphans(storeOf(session), provider, {
    signal,
    onUnreadable: (id, error) => printer.say(`ticket ${quote(id)}: ${error.message}`),
    onElsewhere: (ticket, held) => elsewhere.push(toElsewhere(session, ticket, held)),
  })
}

/** Who drained over several balancers names them all; who drained on one of these, that one. */
function toElsewhere(
  { provider }: Session,
  { id, parts }: Ticket,
  held: readonly MemberRef[],
): ElsewhereData {
  const [first] = parts
  const all = [...(combinedOf(provider)?.all ?? [])]
  const only = all.find(
    ([, { name, instance }]) => name === first?.name && instance === first.instance,
  )
  const names = parts.flatMap(({ balancer }) => (balancer === null ? [] : [balancer]))
  const named = names.length > 1 ? names.join(',') : 'all'
  return { ticket: id, balancers: names.length === 0 ? (only?.[0] ?? 'all') : named, held }
}

function storeOf({ tickets }: Session): TicketStore {
  if (tickets !== undefined) return tickets
  throw new DrainableError(
    'INVALID_OPTIONS',
    '--no-tickets: this verb works on tickets; name their folder',
  )
}

/** The ticket that is meant: the one with that id, or the only one of this balancer that still owes something. */
async function ticketOf(session: Session, id: string | undefined): Promise<Found> {
  const tickets = storeOf(session)
  const place = quote(session.folder ?? '')
  if (id !== undefined) {
    const ticket = (await tickets.get(id)) as Ticket | undefined
    if (ticket !== undefined) return { ticket, tickets }
    throw new DrainableError(
      'NOT_FOUND',
      `no ticket '${quote(id)}' in ${place}; 'orphans' lists them`,
    )
  }
  const elsewhere: ElsewhereData[] = []
  const orphans = (await orphansOf(session, elsewhere)).filter(
    ({ ticket, members }) => ticket.roll !== undefined || members.some(({ owes }) => owes),
  )
  const [only] = orphans
  if (only === undefined)
    throw new DrainableError(
      'NOT_FOUND',
      `no drain that is left over in ${place} still holds a member of this balancer${elsewhere.map((one) => `; ${elsewhereWords(one)}`).join('')}`,
    )
  if (orphans.length === 1) return { ticket: only.ticket, tickets }
  const ids = orphans.map(({ ticket }) => ticket.id).join(', ')
  throw new DrainableError(
    'CONFLICT',
    `${orphans.length} drains are left over, name one of them: ${ids}`,
  )
}
