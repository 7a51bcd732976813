import { randomUUID } from 'node:crypto'
import type { RollOptions, ServerDrained } from '../../index.js'
import { DrainableError } from '../../provider/error.js'
import type { RollReport } from '../../provider/report.js'
import { describeEnd, endedWell } from '../child.js'
import { exitOfRoll } from '../exit-code.js'
import type { Result } from '../result.js'
import type { Session } from '../session.js'
import { balancerOf, checkExpected, failed, targetOf, ticketLeft } from './ending.js'
import { runHeld } from './held.js'
import { notA, toHealth, toNumber, toPolicy, type PolicyFlags } from './policy.js'

/** The options of a roll on the command line. */
export interface RollFlags extends PolicyFlags {
  readonly expect?: string
  readonly canary?: string
  readonly maxUnavailable?: string
  readonly group?: string
  readonly onFailure?: string
  readonly maxFailed?: string
  readonly waitHealthy?: string | boolean
}

/** `roll BALANCER POOL -- COMMAND`: server by server: drain, COMMAND, ready, healthy. */
export async function rollVerb(
  session: Session,
  targets: readonly string[],
  command: readonly string[],
  { expect, ...rest }: RollFlags,
): Promise<Result> {
  const { provider, printer, signal, tickets } = session
  const id = rest.id ?? `roll-${randomUUID()}`
  const seen: Seen = { report: undefined }
  const end = async (): Promise<End> => {
    const target = targetOf(session, targets, { poolAlone: true })
    await checkExpected(session, target, expect)
    const { roll } = await import('../../index.js')
    const report = await roll(provider, target, {
      timeout: '2m',
      ...toRollOptions(rest),
      id,
      signal,
      ...(tickets === undefined ? {} : { tickets }),
      act: actBy(session, command),
      onEvent: (event) => {
        if (event.type === 'roll-end') seen.report = event.report
        printer.event(event)
      },
    })
    return { exitCode: exitOfRoll(report) }
  }
  const ended = await end().catch(failed)
  return {
    verb: 'roll',
    balancer: balancerOf(session),
    ...(seen.report === undefined ? {} : { roll: seen.report }),
    ...(await ticketLeft(session, id)),
    ...ended,
  }
}

type End = ReturnType<typeof failed> | { readonly exitCode: number }

interface Seen {
  report: RollReport | undefined
}

/** COMMAND as the act of a roll: it learns its server from the environment. */
export function actBy(session: Session, command: readonly string[]): RollOptions['act'] {
  return async ({ refs, address, attempt, signal }: ServerDrained) => {
    const env = { DRAINABLE_ATTEMPT: String(attempt) }
    const ended = await runHeld(session, command, { refs, address, env, signal })
    signal.throwIfAborted()
    if (endedWell(ended)) return
    throw new DrainableError('ACTION_FAILED', `COMMAND ${describeEnd(ended)}`)
  }
}

/** A number of servers, or a percentage of them, which the library checks. */
function toShare(text: string): unknown {
  if (/^\d{1,9}$/.test(text)) return Number(text)
  if (/^[\d.]+%$/.test(text)) return text
  throw notA(text, '--max-unavailable', "a whole number from 1, or a percentage such as '10%'")
}

/** What a roll takes beside the options of a drain. */
export function toRollOptions(flags: RollFlags): Omit<RollOptions, 'act'> {
  const { canary, maxUnavailable, group, onFailure, maxFailed, waitHealthy, ...policy } = flags
  const failure =
    maxFailed === undefined ? onFailure : { maxFailed: toNumber(maxFailed, '--max-failed') }
  const given = {
    canary: canary === undefined ? undefined : toNumber(canary, '--canary'),
    maxUnavailable: maxUnavailable === undefined ? undefined : toShare(maxUnavailable),
    group,
    onFailure: failure,
  }
  return {
    ...toPolicy(policy),
    ...(Object.fromEntries(
      Object.entries(given).filter(([, value]) => value !== undefined),
    ) as Partial<RollOptions>),
    ...toHealth(waitHealthy),
  } as Omit<RollOptions, 'act'>
}
