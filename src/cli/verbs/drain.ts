import { randomUUID } from 'node:crypto'
import type { Policy } from '../../index.js'
import type { DrainReport, MemberReport } from '../../provider/report.js'
import { endedWell, type Ended } from '../child.js'
import { EXIT, exitOfDrain } from '../exit-code.js'
import type { DrainResult } from '../result.js'
import type { Session } from '../session.js'
import { lineKey } from '../words/event.js'
import { balancerOf, checkExpected, failed, targetOf, ticketLeft } from './ending.js'
import { addressOf, commandFailed, runHeld } from './held.js'
import { toHealth, toPolicy, type PolicyFlags } from './policy.js'

/** The options of `drain` on the command line. */
export interface DrainFlags extends PolicyFlags {
  readonly expect?: string
  readonly leave?: boolean
  readonly waitHealthy?: string | boolean
}

/** What a drain has come to so far. */
interface Seen {
  report: DrainReport | undefined
  command: Ended | undefined
}

type End = Partial<DrainResult> & { readonly exitCode: number }

/** `drain BALANCER TARGET [-- COMMAND]`: drains, runs the command while the drain is held, makes ready again. */
export async function drainVerb(
  session: Session,
  targets: readonly string[],
  command: readonly string[],
  flags: DrainFlags,
): Promise<DrainResult> {
  const { id = `drain-${randomUUID()}` } = flags
  const seen: Seen = { report: undefined, command: undefined }
  const end = await drainAndRun(session, targets, command, { ...flags, id }, seen).catch(failed)
  return {
    verb: 'drain',
    changed: hasChanged(seen.report),
    balancer: balancerOf(session),
    ...(seen.report === undefined ? {} : { report: seen.report }),
    ...(seen.command === undefined ? {} : { command: seen.command }),
    ...(await ticketLeft(session, id)),
    ...end,
  }
}

async function drainAndRun(
  session: Session,
  targets: readonly string[],
  command: readonly string[],
  { expect, leave, waitHealthy, ...flags }: DrainFlags & { readonly id: string },
  seen: Seen,
): Promise<End> {
  const { provider, printer, signal, tickets } = session
  const target = targetOf(session, targets)
  const health = toHealth(waitHealthy)
  const policy: Policy = {
    ...toPolicy({ timeout: '2m', ...flags }),
    signal,
    ...(tickets === undefined ? {} : { tickets }),
    onEvent: (event) => {
      if (event.type === 'end') seen.report = event.report
      printer.event(event)
    },
  }
  await checkExpected(session, target, expect)
  const { drain } = await import('../../index.js')
  if (command.length === 0) return { exitCode: exitOfDrain(await drain(provider, target, policy)) }
  const report = await drain(provider, target, policy, async (drained, context) => {
    const refs = drained.members.map(({ ref }) => ref)
    const address = addressOf(drained)
    seen.command = await runHeld(session, command, { refs, address, signal: context.signal })
    // What ended the command early is the reason of the end, and not the command.
    context.signal.throwIfAborted()
    return drained
  })
  if (seen.command !== undefined && !endedWell(seen.command))
    return { exitCode: EXIT.command, error: commandFailed(seen.command) }
  if (leave === true) return { exitCode: exitOfDrain(report) }
  return reopen(session, report, health, flags.id)
}

/** Opens what this drain took; what was out before stays out, and is said. */
async function reopen(
  { provider, signal, printer, tickets }: Session,
  report: DrainReport,
  health: ReturnType<typeof toHealth>,
  id: string,
): Promise<End> {
  const isOurs = ({ wasAdmin, outcome }: MemberReport): boolean =>
    wasAdmin === 'ready' && outcome !== 'removed'
  // Of a member that was never read, nothing is known and nothing was changed.
  const read = report.members.filter(({ held, lastReading }) => held || lastReading !== undefined)
  const ours = read.filter(isOurs).map(({ ref }) => ref)
  const others = read.filter((member) => !isOurs(member))
  const leftAsFound = others.map(({ ref }) => lineKey(ref))
  const left = leftAsFound.length === 0 ? {} : { leftAsFound }
  try {
    if (ours.length === 0) return { exitCode: exitOfDrain(report), ...left }
    const { ready } = await import('../../index.js')
    const onEvent = printer.event.bind(printer)
    const opened = await ready(provider, ours, { signal, onEvent, ...health })
    // Nothing is owed any more, but a ticket that names members that were left stays by itself.
    await tickets?.delete(id)
    return { exitCode: exitOfDrain(report), ready: opened, ...left }
  } catch (error) {
    return { ...failed(error), ...left }
  }
}

/** Whether a member is, or was, in another state than before by this drain. */
function hasChanged(report: DrainReport | undefined): boolean {
  return (report?.members ?? []).some(
    ({ held, outcome, terminated, wasAdmin, lastReading }) =>
      held ||
      outcome === 'removed' ||
      terminated > 0 ||
      (lastReading?.present === true && lastReading.own !== wasAdmin),
  )
}
