import type { Orphan, Ticket } from '../../index.js'
import { DrainableError } from '../../provider/error.js'
import { quote } from '../../provider/quote.js'
import type { DrainReport, RollReport } from '../../provider/report.js'
import { describeEnd, endedWell, runCommand, type Ended } from '../child.js'
import { EXIT, exitOfDrain, exitOfRoll } from '../exit-code.js'
import type { Result } from '../result.js'
import type { Session } from '../session.js'
import { without } from '../without.js'
import { balancerOf, failed } from './ending.js'
import { actBy } from './roll.js'

/** `orphans BALANCER`: drains that no process of this machine continues. */
export async function orphansVerb(session: Session): Promise<Result> {
  const verb = 'orphans'
  const balancer = balancerOf(session)
  try {
    return { verb, exitCode: EXIT.ok, balancer, orphans: await orphansOf(session) }
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
    const report = await restore(provider, ticket, {
      tickets,
      signal,
      onEvent: (event) => printer.event(event),
    })
    const exitCode = exitOfDrain(report)
    const error = report.error ?? report.members.find((member) => member.error)?.error
    const words = exitCode === EXIT.ok || error === undefined ? {} : { error: failed(error).error }
    return { verb, exitCode, balancer, ticket: ticket.id, report, ...words }
  } catch (error) {
    return { verb, balancer, ...failed(error) }
  }
}

/** `resume BALANCER [TICKET] [-- COMMAND]`: goes on with a drain or a roll whose process is gone. */
export async function resumeVerb(
  session: Session,
  id: string | undefined,
  command: readonly string[],
  { quietStdout }: { readonly quietStdout: boolean },
): Promise<Result> {
  const balancer = balancerOf(session)
  try {
    const { ticket, tickets } = await ticketOf(session, id)
    return isRoll(ticket)
      ? await resumeRollOf(session, { ticket, tickets }, command, quietStdout)
      : await resumeDrainOf(session, { ticket, tickets }, command, quietStdout)
  } catch (error) {
    return { verb: 'resume', changed: false, balancer, ...failed(error) }
  }
}

type Found = Awaited<ReturnType<typeof ticketOf>>

async function resumeRollOf(
  session: Session,
  { ticket, tickets }: Found,
  command: readonly string[],
  quietStdout: boolean,
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
    act: actBy(session, command, quietStdout),
    onEvent: (event) => printer.event(event),
  })
  const roll: RollReport = await handle.done
  const exitCode = signal.aborted ? failed(signal.reason).exitCode : exitOfRoll(roll)
  const words = roll.error === undefined ? {} : { error: failed(roll.error).error }
  return {
    verb: 'resume',
    exitCode,
    balancer: balancerOf(session),
    roll,
    ...(roll.outcome === 'done' ? {} : { ticket: ticket.id }),
    ...words,
  }
}

async function resumeDrainOf(
  session: Session,
  { ticket, tickets }: Found,
  command: readonly string[],
  quietStdout: boolean,
): Promise<Result> {
  const { provider, printer, signal, io } = session
  const balancer = balancerOf(session)
  const { resumeDrain } = await import('../../index.js')
  await using handle = resumeDrain(provider, ticket, {
    tickets,
    signal,
    onEvent: (event) => printer.event(event),
  })
  const report: DrainReport = await handle.done
  const base = { verb: 'resume', changed: true, balancer, report, ticket: ticket.id } as const
  if (signal.aborted) return { ...base, ...failed(signal.reason) }
  const goesOn = ['idle', 'removed', 'terminated', 'proceeded'].includes(report.outcome)
  if (!goesOn || command.length === 0) {
    const error = report.error ?? report.members.find((member) => member.error)?.error
    const words = goesOn || error === undefined ? {} : { error: failed(error).error }
    return { ...base, exitCode: exitOfDrain(report), ...words }
  }
  printer.pause()
  const ended: Ended = await runCommand(command, { env: io.env, quietStdout, signal }).finally(() =>
    printer.resume(),
  )
  if (!endedWell(ended)) {
    const error = {
      code: 'ACTION_FAILED',
      message: `COMMAND ${describeEnd(ended)}: the member stays drained`,
    }
    return { ...base, exitCode: EXIT.command, command: ended, error }
  }
  const opened = await handle.restore()
  return {
    ...without(base, ['ticket']),
    exitCode: exitOfDrain(opened),
    command: ended,
    report: opened,
  }
}

function isRoll(ticket: Ticket): boolean {
  return 'roll' in ticket
}

async function orphansOf(session: Session): Promise<readonly Orphan[]> {
  const { provider, signal, printer } = session
  const { findOrphans } = await import('../../index.js')
  return findOrphans(storeOf(session), provider, {
    signal,
    onUnreadable: (id, error) => printer.say(`ticket ${quote(id)}: ${error.message}`),
  })
}

function storeOf({ tickets }: Session): NonNullable<Session['tickets']> {
  if (tickets !== undefined) return tickets
  throw new DrainableError(
    'INVALID_OPTIONS',
    '--no-tickets: this verb works on tickets; name their folder',
  )
}

/** The ticket that is meant: the one with that id, or the only orphan of this balancer. */
async function ticketOf(
  session: Session,
  id: string | undefined,
): Promise<{ readonly ticket: Ticket; readonly tickets: NonNullable<Session['tickets']> }> {
  const tickets = storeOf(session)
  const place = session.folder ?? ''
  if (id !== undefined) {
    const ticket = (await tickets.get(id)) as Ticket | undefined
    if (ticket !== undefined) return { ticket, tickets }
    throw new DrainableError(
      'NOT_FOUND',
      `no ticket '${quote(id)}' in ${quote(place)}; 'orphans' lists them`,
    )
  }
  const orphans = await orphansOf(session)
  const [only] = orphans
  if (only === undefined)
    throw new DrainableError(
      'NOT_FOUND',
      `no drain of this balancer is left over in ${quote(place)}`,
    )
  if (orphans.length === 1) return { ticket: only.ticket, tickets }
  const ids = orphans.map(({ ticket }) => ticket.id).join(', ')
  throw new DrainableError(
    'CONFLICT',
    `${orphans.length} drains are left over, name one of them: ${ids}`,
  )
}
