import { randomUUID } from 'node:crypto'
import type { Policy, ReadyReport, Ticket } from '../../index.js'
import { DrainableError } from '../../provider/error.js'
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
  ticket: Ticket | undefined
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
  const seen: Seen = { report: undefined, ticket: undefined, command: undefined }
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
  if (command.length === 0 && waitHealthy !== undefined)
    throw new DrainableError(
      'INVALID_OPTIONS',
      '--wait-healthy is for what is made ready after COMMAND, and there is none: leave it out, or add -- COMMAND',
    )
  const target = targetOf(session, targets)
  const health = toHealth(waitHealthy)
  const policy: Policy = {
    ...toPolicy({ timeout: '2m', ...flags }),
    signal,
    ...(tickets === undefined ? {} : { tickets }),
    onTicket: (ticket) => {
      seen.ticket = ticket
    },
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
  const { ticket } = seen
  if (leave === true || ticket === undefined) return { exitCode: exitOfDrain(report) }
  return reopen(session, { report, ticket }, health)
}

/** Undoes what this drain changed; what was out before, or was taken further out meanwhile, stays out, and is said. */
async function reopen(
  { provider, signal, printer, tickets }: Session,
  { report, ticket }: { readonly report: DrainReport; readonly ticket: Ticket },
  health: ReturnType<typeof toHealth>,
): Promise<End> {
  const onEvent = printer.event.bind(printer)
  const isOurs = ({ wasAdmin, outcome }: MemberReport): boolean =>
    wasAdmin === 'ready' && outcome !== 'removed'
  // Of a member that was never read, nothing is known and nothing was changed.
  const read = report.members.filter(({ held, lastReading }) => held || lastReading !== undefined)
  const wasOut = read.filter(
    ({ wasAdmin, outcome }) => wasAdmin !== 'ready' && outcome !== 'removed',
  )
  let left = sayLeft(wasOut)
  try {
    if (!read.some(({ held }) => held)) return { exitCode: exitOfDrain(report), ...left }
    const { ready, restore } = await import('../../index.js')
    const undone = await restore(provider, ticket, { tickets, signal, onEvent })
    const gone = undone.members.filter(({ outcome }) => outcome === 'gone')
    left = sayLeft(
      wasOut.filter((one) => !gone.some(({ ref }) => lineKey(ref) === lineKey(one.ref))),
    )
    const names = new Set(
      read.filter(({ outcome }) => outcome !== 'removed').map(({ ref }) => lineKey(ref)),
    )
    const members = undone.members.filter(({ ref }) => names.has(lineKey(ref)))
    const lost = members.find(({ outcome }) => outcome !== 'restored')
    if (lost !== undefined) throw lost.error ?? undone.error
    const ours = members.filter(isOurs)
    const refs = ours.map(({ ref }) => ref)
    const isAwaited = health.waitHealthy !== undefined && refs.length > 0
    const opened = isAwaited
      ? await ready(provider, refs, { signal, onEvent, ...health })
      : { members: ours.map((one) => asReady(one, report)) }
    const said = refs.length === 0 ? {} : { ready: opened }
    return { exitCode: exitOfDrain(report), ...said, ...left }
  } catch (error) {
    return { ...failed(error), ...left }
  }
}

function sayLeft(members: readonly MemberReport[]): Pick<DrainResult, 'leftAsFound'> {
  const leftAsFound = members.map(({ ref }) => lineKey(ref))
  return leftAsFound.length === 0 ? {} : { leftAsFound }
}

/** A member that was put back, as `ready()` reports it. @param drained - from before that */
function asReady(
  { ref, wasAdmin, lastReading }: MemberReport,
  drained: DrainReport,
): ReadyReport['members'][number] {
  const before = drained.members.find((one) => lineKey(one.ref) === lineKey(ref))?.lastReading
  const own = before?.present === true ? before.own : 'unknown'
  const health = lastReading?.present === true ? lastReading.health : 'unknown'
  return { ref, wasAdmin: own === 'unknown' ? wasAdmin : own, health }
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
