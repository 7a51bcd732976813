import { randomUUID } from 'node:crypto'
import type { MemberRef, RollOptions, ServerDrained } from '../../index.js'
import { DrainableError } from '../../provider/error.js'
import type { RollReport } from '../../provider/report.js'
import { describeEnd, endedWell, runCommand } from '../child.js'
import { exitOfRoll } from '../exit-code.js'
import type { Result } from '../result.js'
import type { Session } from '../session.js'
import { parseTargets } from '../target.js'
import { balancerOf, checkExpected, failed } from './ending.js'
import { toHealth, toNumber, toPolicy, type PolicyFlags } from './policy.js'

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
  { quietStdout, ...flags }: RollFlags & { readonly quietStdout: boolean },
): Promise<Result> {
  const { provider, printer, signal, tickets } = session
  const { expect, ...rest } = flags
  const id = rest.id ?? `roll-${randomUUID()}`
  const seen: Seen = { report: undefined }
  try {
    const target = parseTargets(targets, true)
    await checkExpected(session, target, expect)
    const { roll } = await import('../../index.js')
    const report = await roll(provider, target, {
      timeout: '2m',
      ...toRollOptions(rest),
      id,
      signal,
      ...(tickets === undefined ? {} : { tickets }),
      act: actBy(session, command, quietStdout),
      onEvent: (event) => {
        if (event.type === 'roll-end') seen.report = event.report
        printer.event(event)
      },
    })
    return {
      verb: 'roll',
      exitCode: exitOfRoll(report),
      balancer: balancerOf(session),
      roll: report,
    }
  } catch (error) {
    const { report } = seen
    return {
      verb: 'roll',
      balancer: balancerOf(session),
      ...(report === undefined ? {} : { roll: report }),
      ...(report === undefined || tickets === undefined ? {} : { ticket: id }),
      ...failed(error),
    }
  }
}

interface Seen {
  report: RollReport | undefined
}

/** COMMAND as the act of a roll: it learns its server from the environment. */
export function actBy(
  { io, printer }: Session,
  command: readonly string[],
  quietStdout: boolean,
): RollOptions['act'] {
  return async ({ refs, address, attempt, signal }: ServerDrained) => {
    printer.pause()
    const ended = await runCommand(command, {
      env: {
        ...io.env,
        ...memberEnv(refs),
        ...(address === undefined ? {} : { DRAINABLE_ADDRESS: address }),
        DRAINABLE_ATTEMPT: String(attempt),
      },
      quietStdout,
      signal,
    }).finally(() => printer.resume())
    signal.throwIfAborted()
    if (endedWell(ended)) return
    throw new DrainableError('ACTION_FAILED', `COMMAND ${describeEnd(ended)}`)
  }
}

/** The members of one server, for COMMAND: the first one, and all of them. */
export function memberEnv(refs: readonly MemberRef[]): Readonly<Record<string, string>> {
  const names = refs.map(({ pool, member }) => `${pool}/${member}`)
  return { DRAINABLE_MEMBER: names[0] ?? '', DRAINABLE_MEMBERS: names.join(' ') }
}

/** What a roll takes beside the options of a drain. */
export function toRollOptions(flags: RollFlags): Omit<RollOptions, 'act'> {
  const { canary, maxUnavailable, group, onFailure, maxFailed, waitHealthy, ...policy } = flags
  const failure = maxFailed === undefined ? onFailure : { maxFailed: toNumber(maxFailed) }
  const given = {
    canary: canary === undefined ? undefined : toNumber(canary),
    maxUnavailable: maxUnavailable === undefined ? undefined : toNumber(maxUnavailable),
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
