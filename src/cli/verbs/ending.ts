import { combinedOf } from '../../core/combined.js'
import type { Target } from '../../core/calls/target.js'
import type { Reading } from '../../provider/contract.js'
import { DrainableError, isDrainableError } from '../../provider/error.js'
import { quote } from '../../provider/quote.js'
import { exitOfError } from '../exit-code.js'
import type { ErrorData } from '../result.js'
import { Interrupted, type Balancer, type Session } from '../session.js'
import { parseTargets, type TargetRules } from '../target.js'
import { lineKey } from '../words/event.js'

/** The balancer of a session, for its result. */
export function balancerOf({ provider }: Session): Balancer {
  return { name: provider.name, instance: provider.instance }
}

/** The parts of a result that a thrown value gives. */
export function failed(error: unknown): { readonly exitCode: number; readonly error: ErrorData } {
  if (error instanceof Interrupted)
    return { exitCode: error.exitCode, error: { code: error.signal, message: error.message } }
  const message = error instanceof Error ? error.message : String(error)
  const code = isDrainableError(error) ? error.code : 'ERROR'
  return { exitCode: exitOfError(error), error: { code, message } }
}

/** What a verb works on, as the command line has it. */
export function targetOf(
  { provider, named }: Session,
  texts: readonly string[],
  rules: TargetRules = {},
): Target {
  const tagged = texts.find((text) => text.startsWith(`${named}:`) && text.includes('/'))
  if (tagged !== undefined && combinedOf(provider) === undefined)
    throw new DrainableError(
      'INVALID_OPTIONS',
      `the target: '${quote(tagged, 80)}' names its balancer, which is for several at once: leave out '${named}:'`,
    )
  const balancers = [...(combinedOf(provider)?.all.keys() ?? [])]
  return parseTargets(texts, { ...rules, balancers })
}

/** The ticket under which a drain or a roll can be gone on with or undone, if one is left. */
export async function ticketLeft(
  { tickets }: Session,
  id: string,
): Promise<{ readonly ticket?: string }> {
  // A store that fails has said so in the report, or in an event.
  const left = await Promise.resolve(tickets?.get(id)).catch(() => undefined)
  return left === undefined || left === null ? {} : { ticket: id }
}

/**
 * Looks which members a target hits, where the caller said how many it expects.
 *
 * @throws `REJECTED` that lists what was found
 */
export async function checkExpected(
  { provider, signal }: Session,
  target: Target,
  expected: string | undefined,
): Promise<void> {
  if (expected === undefined) return
  toCount(expected)
  const { select } = await import('../../core/calls/watch.js')
  checkNumber(await select(provider, target, { signal }), expected)
}

/** The same where they were looked at. */
export function checkNumber(found: readonly Reading[], expected: string | undefined): void {
  if (expected === undefined) return
  const wanted = toCount(expected)
  if (found.length === wanted) return
  const names = found.slice(0, 10).map(({ ref }) => lineKey(ref))
  const more = found.length > names.length ? ` and ${found.length - names.length} more` : ''
  const which = names.length === 0 ? '' : `: ${names.join(', ')}${more}`
  throw new DrainableError(
    'REJECTED',
    `--expect ${wanted}: the target hits ${found.length}${which}; nothing was changed`,
  )
}

function toCount(text: string): number {
  if (/^[1-9]\d{0,6}$/.test(text)) return Number(text)
  throw new DrainableError(
    'INVALID_OPTIONS',
    `--expect: found '${quote(text, 40)}', expected how many members the target hits, such as 3`,
  )
}
