import { randomUUID } from 'node:crypto'
import type { Policy, ReadyReport } from '../../index.js'
import type { DrainReport, MemberReport } from '../../provider/report.js'
import { describeEnd, endedWell, runCommand, type Ended } from '../child.js'
import { EXIT, exitOfDrain } from '../exit-code.js'
import type { DrainResult } from '../result.js'
import type { Session } from '../session.js'
import { parseTargets } from '../target.js'
import { lineKey } from '../words/event.js'
import { balancerOf, checkExpected, failed } from './ending.js'
import { memberEnv } from './roll.js'
import { toHealth, toPolicy, type PolicyFlags } from './policy.js'

/** The options of `drain` on the command line. */
export interface DrainFlags extends PolicyFlags {
  readonly expect?: string
  readonly leave?: boolean
  readonly waitHealthy?: string | boolean
  /** Whether stdout is for a document alone. */
  readonly quietStdout: boolean
}

/** `drain BALANCER TARGET [-- COMMAND]`: drains, runs the command while the drain is held, makes ready again. */
export async function drainVerb(
  session: Session,
  targets: readonly string[],
  command: readonly string[],
  flags: DrainFlags,
): Promise<DrainResult> {
  const { provider, printer, signal, tickets } = session
  const { expect, leave, waitHealthy, quietStdout, ...rest } = flags
  const target = parseTargets(targets)
  const id = rest.id ?? `drain-${randomUUID()}`
  const seen: Seen = { report: undefined, command: undefined }
  const policy: Policy = {
    ...toPolicy({ timeout: '2m', ...rest }),
    id,
    signal,
    ...(tickets === undefined ? {} : { tickets }),
    onEvent: (event) => {
      if (event.type === 'end') seen.report = event.report
      printer.event(event)
    },
  }
  const result = (end: Partial<DrainResult> & { readonly exitCode: number }): DrainResult => ({
    verb: 'drain',
    changed: hasChanged(seen.report),
    balancer: balancerOf(session),
    ...(seen.report === undefined ? {} : { report: seen.report }),
    ...(seen.command === undefined ? {} : { command: seen.command }),
    ...end,
  })
  const ticket = tickets === undefined ? {} : { ticket: id }
  try {
    await checkExpected(session, target, expect)
    const { drain } = await import('../../index.js')
    if (command.length === 0) {
      const report = await drain(provider, target, policy)
      return result({ exitCode: exitOfDrain(report), ...ticket })
    }
    await drain(provider, target, policy, async ({ members }, context) => {
      printer.pause()
      seen.command = await runCommand(command, {
        env: { ...session.io.env, ...memberEnv(members.map(({ ref }) => ref)) },
        quietStdout,
        signal: context.signal,
      }).finally(() => printer.resume())
      // What ended the command early is the reason of the end, and not the command.
      context.signal.throwIfAborted()
    })
  } catch (error) {
    return result({ ...failed(error), ...(hasChanged(seen.report) ? ticket : {}) })
  }
  const { command: ended, report } = seen
  if (ended === undefined || report === undefined)
    throw new Error('the drain ended without its end')
  if (!endedWell(ended)) {
    const message = `COMMAND ${describeEnd(ended)}: the member stays drained`
    return result({
      exitCode: EXIT.command,
      error: { code: 'ACTION_FAILED', message },
      ...ticket,
    })
  }
  if (leave === true) return result({ exitCode: exitOfDrain(report), ...ticket })
  return reopen(session, report, waitHealthy, result)
}

interface Seen {
  report: DrainReport | undefined
  command: Ended | undefined
}

/** Opens what this drain took; what was out before stays out. */
async function reopen(
  session: Session,
  report: DrainReport,
  waitHealthy: string | boolean | undefined,
  result: (end: Partial<DrainResult> & { readonly exitCode: number }) => DrainResult,
): Promise<DrainResult> {
  const isOurs = ({ wasAdmin, outcome }: MemberReport): boolean =>
    wasAdmin === 'ready' && outcome !== 'removed'
  const ours = report.members.filter(isOurs).map(({ ref }) => ref)
  const leftAsFound = report.members
    .filter((member) => !isOurs(member))
    .map(({ ref }) => lineKey(ref))
  try {
    const opened: ReadyReport | undefined =
      ours.length === 0 ? undefined : await open(session, ours, waitHealthy)
    return result({
      exitCode: exitOfDrain(report),
      ...(opened === undefined ? {} : { ready: opened }),
      ...(leftAsFound.length === 0 ? {} : { leftAsFound }),
    })
  } catch (error) {
    return result(failed(error))
  }
}

async function open(
  { provider, signal, printer }: Session,
  refs: DrainReport['members'][number]['ref'][],
  waitHealthy: string | boolean | undefined,
): Promise<ReadyReport> {
  const { ready } = await import('../../index.js')
  return ready(provider, refs, {
    signal,
    onEvent: (event) => printer.event(event),
    ...toHealth(waitHealthy),
  })
}

/** Whether a member is in another state than before. */
function hasChanged(report: DrainReport | undefined): boolean {
  return (report?.members ?? []).some(
    ({ wasAdmin, lastReading }) =>
      lastReading?.present === false ||
      (lastReading?.present === true && lastReading.own !== wasAdmin),
  )
}
