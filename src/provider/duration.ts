import { DrainableError } from './error.js'
import { quote } from './quote.js'

/**
 * A duration: milliseconds, or a text with its unit: `30_000`, `'250ms'`, `'30s'`, `'2m'`, `'1h'`. An option does not take a
 * bare number from 1 to 999.
 */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h'}`

const UNIT = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const
const TEXT = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/

/** The limits of a duration, which is never negative. */
export interface DurationRule {
  /** Refuses a bare number from 1 to 999: nearly always the caller meant seconds. */
  readonly bareSeconds?: 'refuse'
  /** Smallest value, in milliseconds. Default 0. */
  readonly min?: number
  /** Largest value, in milliseconds. Default: ten years. */
  readonly max?: number
  /** Whether `Infinity` is allowed. Default false. */
  readonly infinite?: boolean
}

/**
 * Longest duration except `Infinity`, in milliseconds: ten years. A longer one is a mistake, and a date can't
 * represent it.
 */
const LONGEST = 10 * 365 * 24 * 3_600_000

/**
 * Parses a duration into milliseconds.
 *
 * @param value - what the caller gave
 * @param field - its name, for the message
 * @throws `INVALID_OPTIONS` naming the field, what was expected and what to write instead
 */
export function parseDuration(value: unknown, field: string, rule: DurationRule = {}): number {
  const ms = toMs(value)
  const shown = show(value)
  if (ms === undefined || Number.isNaN(ms) || ms < 0) {
    throw new DrainableError(
      'INVALID_OPTIONS',
      `${field} is ${shown}, expected milliseconds or a text with its unit, such as 30000 or '30s' (ms, s, m, h)`,
    )
  }
  if (ms === Infinity && rule.infinite !== true) {
    throw new DrainableError('INVALID_OPTIONS', `${field} is Infinity, expected a finite duration`)
  }
  if (ms !== Infinity && ms > LONGEST) {
    throw new DrainableError(
      'INVALID_OPTIONS',
      `${field} is ${shown}, expected at most ten years${rule.infinite === true ? ", or Infinity for 'no limit'" : ''}`,
    )
  }
  if (rule.bareSeconds === 'refuse' && typeof value === 'number' && value >= 1 && value <= 999) {
    throw new DrainableError(
      'INVALID_OPTIONS',
      `${field} is ${shown}, a bare number is milliseconds: did you mean '${shown}s'? Write '${shown}ms' for milliseconds`,
    )
  }
  if (ms < (rule.min ?? 0)) {
    throw new DrainableError(
      'INVALID_OPTIONS',
      `${field} is ${formatDuration(ms)}, expected at least ${formatDuration(rule.min ?? 0)}`,
    )
  }
  if (rule.max !== undefined && ms > rule.max && ms !== Infinity) {
    throw new DrainableError(
      'INVALID_OPTIONS',
      `${field} is ${formatDuration(ms)}, expected at most ${formatDuration(rule.max)}`,
    )
  }
  return ms
}

/**
 * Checks a text from an environment variable, an argument or a file as a {@link Duration}. TypeScript accepts only
 * literal texts as a {@link Duration}, not any `string`.
 *
 * @param value - such as `'30s'`, `'1.5h'`, or a number of milliseconds
 * @param name - the name of its source, for the message
 * @returns the same value
 * @throws `INVALID_OPTIONS` naming the source and what was expected; `'30'` has no unit and is refused
 *
 * @example
 * ```ts
 * import { drain, toDuration, type DrainableProvider } from 'drainable'
 *
 * declare const lb: DrainableProvider
 * const timeout = toDuration(process.env['DRAIN_TIMEOUT'] ?? '2m', 'DRAIN_TIMEOUT')
 * await drain(lb, { pool: 'web', member: 'web1' }, { timeout })
 * ```
 */
export function toDuration(value: unknown, name = 'the duration'): Duration {
  parseDuration(value, name)
  return value as Duration
}

function show(value: unknown): string {
  if (typeof value === 'string') return `'${quote(value, 40)}'`
  if (typeof value === 'bigint') return `${value}n`
  return typeof value === 'object' && value !== null ? 'an object' : String(value)
}

function toMs(value: unknown): number | undefined {
  if (typeof value === 'number') return value
  if (typeof value !== 'string') return undefined
  const match = TEXT.exec(value)
  if (!match) return undefined
  return Number(match[1]) * UNIT[match[2] as keyof typeof UNIT]
}

/** Formats a duration for people: `250 ms`, `1.1 s`, `2 m 30 s`, `1 h 5 m`. */
export function formatDuration(ms: number): string {
  if (ms === Infinity) return 'for ever'
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${Number((ms / 1_000).toFixed(1))} s`
  const seconds = Math.round(ms / 1_000)
  if (seconds < 3_600) return joined(Math.floor(seconds / 60), 'm', seconds % 60, 's')
  const minutes = Math.round(seconds / 60)
  return joined(Math.floor(minutes / 60), 'h', minutes % 60, 'm')
}

function joined(big: number, bigUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${big} ${bigUnit}` : `${big} ${bigUnit} ${small} ${smallUnit}`
}
