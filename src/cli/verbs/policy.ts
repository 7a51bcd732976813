import type { Policy } from '../../core/calls/policy.js'
import type { Duration } from '../../provider/duration.js'
import { DrainableError } from '../../provider/error.js'
import { quote } from '../../provider/quote.js'

/** The options of the command line that are options of a drain, as texts. */
export interface PolicyFlags {
  readonly timeout?: string
  readonly onTimeout?: string
  readonly hold?: string
  readonly escalateAfter?: string
  readonly settle?: string
  readonly until?: string
  readonly seal?: boolean
  readonly keepReady?: string
  readonly onMinimum?: string
  readonly onOverrule?: string
  readonly onAbort?: string
  readonly onUnreachable?: string
  readonly ifUnsupported?: string
  readonly id?: string
  readonly owner?: string
  readonly pace?: string
}

/** The flags whose values are times. */
const TIMES = ['timeout', 'escalateAfter', 'settle', 'pace'] as const

/**
 * The policy that flags name. Only what a text can't say is turned here; the library checks every value.
 *
 * @throws `INVALID_OPTIONS` for a time without a unit
 */
export function toPolicy(flags: PolicyFlags): Policy {
  const policy: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(flags)) if (value !== undefined) policy[name] = value
  for (const name of TIMES) {
    const value = flags[name]
    if (value !== undefined) policy[name] = toTime(value, flagOf(name), name === 'timeout')
  }
  if (flags.keepReady !== undefined) policy['keepReady'] = toNumber(flags.keepReady, '--keep-ready')
  return policy
}

/**
 * A time with its unit, or `never`.
 *
 * @param endless - whether it may be `never`
 * @throws `INVALID_OPTIONS` for a bare number, because seconds and milliseconds are both likely, and for any other text
 */
export function toTime(text: string, flag: string, endless = true): Duration {
  if (endless && (text === 'never' || text === 'Infinity')) return Infinity
  if (text === '0') return 0
  if (/^\d+(?:\.\d+)?$/.test(text))
    throw new DrainableError(
      'INVALID_OPTIONS',
      `${flag} is '${text}', a number without a unit: did you mean '${text}s'? Write '${text}ms' for milliseconds`,
    )
  if (!/^\d+(?:\.\d+)?(?:ms|s|m|h)$/.test(text))
    throw new DrainableError(
      'INVALID_OPTIONS',
      `${flag} is '${quote(text, 40)}', expected one number and its unit (ms, s, m, h), such as 90s or 2m${endless ? ', or never' : ''}`,
    )
  return text as Duration
}

/** @throws `INVALID_OPTIONS` for what is no whole number; its range is for the library to check */
export function toNumber(text: string, flag: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text)
  throw notA(text, flag, 'a whole number, such as 1')
}

/** The refusal of a value, which repeats what was found. */
export function notA(text: string, flag: string, expected: string): DrainableError {
  return new DrainableError(
    'INVALID_OPTIONS',
    `${flag}: found '${quote(text, 40)}', expected ${expected}`,
  )
}

/** `onTimeout` as the command line has it. */
export function flagOf(name: string): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
}

/** `--wait-healthy` alone waits as long as the library does, with a time as long as that. */
export function toHealth(wish: string | boolean | undefined): {
  readonly waitHealthy?: boolean | Duration
} {
  if (wish === undefined) return {}
  return { waitHealthy: typeof wish === 'string' ? toTime(wish, '--wait-healthy') : wish }
}
