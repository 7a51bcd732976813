import { parseDuration } from '../../provider/duration.js'
import { DrainableError } from '../../provider/error.js'
import { quote } from '../../provider/quote.js'
import type { DrainReport } from '../../provider/report.js'
import { EXIT } from '../exit-code.js'
import type { Result } from '../result.js'
import type { Session } from '../session.js'
import { balancerOf, checkExpected, checkNumber, failed, targetOf } from './ending.js'
import { flagOf, toHealth, toPolicy, toTime } from './policy.js'
import { toRollOptions, type RollFlags } from './roll.js'
import { dropSettled } from './tickets.js'

/** The options of `status` on the command line. */
export interface StatusFlags {
  readonly expect?: string
}

/** The options of `watch` on the command line. */
export interface WatchFlags {
  readonly untilIdle?: boolean
  readonly settle?: string
  readonly timeout?: string
  readonly onUnreachable?: string
}

/** The options of `plan` on the command line. */
export interface PlanFlags extends RollFlags {
  /** Whether the plan of a roll is asked for. */
  readonly roll?: boolean
}

/** The options of `ready` on the command line. */
export interface ReadyFlags {
  readonly expect?: string
  readonly timeout?: string
  readonly waitHealthy?: string | boolean
}

/** `status BALANCER [TARGET]`: every member that the target hits, as it is now. */
export async function statusVerb(
  session: Session,
  targets: readonly string[],
  { expect }: StatusFlags,
): Promise<Result> {
  const verb = 'status'
  const balancer = balancerOf(session)
  try {
    // Not by way of the whole package: a status is asked for often, and begins in half the time.
    const { select } = await import('../../core/calls/watch.js')
    const target = targets.length === 0 ? 'all' : targetOf(session, targets)
    const members = await select(session.provider, target, { signal: session.signal })
    checkNumber(members, expect)
    // Every other verb refuses an address that no member has, and a status is what a script asks before it.
    if (target !== 'all' && members.length === 0)
      throw new DrainableError('NOT_FOUND', `no member has address ${quote(targets.join(' '))}`)
    return { verb, exitCode: EXIT.ok, balancer, members }
  } catch (error) {
    return { verb, balancer, ...failed(error) }
  }
}

/** `watch BALANCER TARGET`: looks without a change, until it is ended, or every member is idle with `--until-idle`. */
export async function watchVerb(
  session: Session,
  targets: readonly string[],
  { untilIdle = false, timeout, ...flags }: WatchFlags,
): Promise<Result> {
  const { provider, signal, printer, io } = session
  const verb = 'watch'
  const balancer = balancerOf(session)
  let report: DrainReport | undefined
  try {
    const { watch } = await import('../../core/calls/watch.js')
    const enough = new AbortController()
    const limit = AbortSignal.any([signal, enough.signal])
    // Nobody reads on: there is nobody to watch for.
    io.stdout.onClose?.(() => enough.abort())
    await using view = watch(provider, targetOf(session, targets), {
      ...toPolicy(flags),
      signal: limit,
    })
    const timer = deadline(timeout, () => enough.abort())
    try {
      for await (const event of view) {
        printer.event(event)
        if (event.type === 'end') report = event.report
        if (untilIdle && isAllIdle(view.report())) break
      }
    } finally {
      clearTimeout(timer)
    }
    signal.throwIfAborted()
    const last = report ?? view.report()
    const error = last.error ?? (io.stdout.isClosed ? undefined : neverRead(last))
    if (error !== undefined) return { verb, balancer, report: last, ...failed(error) }
    const exitCode = !untilIdle || isAllIdle(last) ? EXIT.ok : EXIT.timeout
    return { verb, exitCode, balancer, report: last }
  } catch (error) {
    return { verb, balancer, ...(report === undefined ? {} : { report }), ...failed(error) }
  }
}

function isAllIdle({ members }: DrainReport): boolean {
  return members.length > 0 && members.every(({ phase }) => phase === 'idle' || phase === 'removed')
}

/** What to say where the balancer was waited for in vain. */
function neverRead({ members }: DrainReport): DrainableError | undefined {
  if (members.length > 0) return undefined
  const words = '--timeout: the balancer could not be read before it was over'
  return new DrainableError('UNREACHABLE', words)
}

function deadline(text: string | undefined, over: () => void): NodeJS.Timeout | undefined {
  if (text === undefined) return undefined
  const ms = parseDuration(toTime(text, '--timeout'), '--timeout', { infinite: true })
  return ms === Infinity ? undefined : setTimeout(over, ms)
}

/** `plan BALANCER TARGET`: what a drain or a roll would do. */
export async function planVerb(
  session: Session,
  targets: readonly string[],
  flags: PlanFlags,
): Promise<Result> {
  const verb = 'plan'
  const balancer = balancerOf(session)
  try {
    const { plan } = await import('../../index.js')
    const { roll = false, expect, ...rest } = flags
    if (!roll) refuseRolling(rest)
    const asked = { timeout: '2m', ...rest }
    const target = targetOf(session, targets, { poolAlone: roll })
    await checkExpected(session, target, expect)
    const made = await plan(session.provider, target, {
      ...(roll ? { group: 'address' as const, ...toRollOptions(asked) } : toPolicy(asked)),
      signal: session.signal,
    })
    const [refused] = made.refused
    return refused === undefined
      ? { verb, exitCode: EXIT.ok, balancer, plan: made }
      : { verb, balancer, plan: made, ...failed(refused) }
  } catch (error) {
    return { verb, balancer, ...failed(error) }
  }
}

/** The library would take it for the plan of a roll. */
function refuseRolling(flags: RollFlags): void {
  const names = [
    'canary',
    'maxUnavailable',
    'group',
    'onFailure',
    'maxFailed',
    'waitHealthy',
  ] as const
  const given =
    flags.onTimeout === 'postpone'
      ? '--on-timeout postpone'
      : names.filter((name) => flags[name] !== undefined).map(flagOf)[0]
  if (given === undefined) return
  throw new DrainableError('INVALID_OPTIONS', `${given} is for the plan of a roll: add --roll`)
}

/** `ready BALANCER TARGET`: makes ready whoever drained it. */
export async function readyVerb(
  session: Session,
  targets: readonly string[],
  flags: ReadyFlags,
): Promise<Result> {
  const { provider, signal, printer } = session
  const verb = 'ready'
  const balancer = balancerOf(session)
  try {
    const { ready } = await import('../../index.js')
    const target = targetOf(session, targets)
    await checkExpected(session, target, flags.expect)
    const report = await ready(provider, target, {
      signal,
      onEvent: (event) => printer.event(event),
      ...toHealth(flags.waitHealthy),
      ...(flags.timeout === undefined ? {} : { timeout: toTime(flags.timeout, '--timeout') }),
    })
    await dropSettled(session, report.members)
    return { verb, exitCode: EXIT.ok, balancer, report }
  } catch (error) {
    return { verb, balancer, ...failed(error) }
  }
}
