/** Schemas of options that more than one layer takes: functions, signals, clocks, durations. */
import * as z from 'zod/mini'
import type { Clock } from './clock.js'
import { parseDuration, type Duration, type DurationRule } from './duration.js'
import { isPromise, missingMethods, once } from './options.js'

/** A schema for a text that is not empty. */
export const nonEmpty = once(() => z.string().check(z.minLength(1)))

/**
 * A schema for a whole number.
 *
 * @param words - said of every other value, in place of what is wrong with it
 */
export function whole(min: number, max = Infinity, words?: string): z.ZodMiniNumber<number> {
  return z.int(words).check(z.minimum(min, words), z.maximum(max, words))
}

/**
 * A schema for a text of a form.
 *
 * @param words - said of a text that has another form
 */
export function matching(form: RegExp, words: string): z.ZodMiniString {
  return z.string().check(z.regex(form, words))
}

/** What was given in place of a function that does work: `act: install()` begins it before anything is drained. */
export const ITS_CALL =
  'expected a function, found a promise: pass the function, not its call (`install`, not `install()`)'

const anyFunction = once(() =>
  z.custom((value) => typeof value === 'function', {
    error: ({ input }) => (isPromise(input) ? ITS_CALL : 'expected a function'),
  }),
)

/** A schema for a function option. Only that it is a function can be checked. */
export function fn<F = (...args: never[]) => unknown>(): z.ZodMiniType<F, F> {
  return anyFunction() as z.ZodMiniType<F, F>
}

const CLOCK = 'expected a clock with now() and setTimeout(), and wall() or none'

/** What is wrong with a clock. `setTimeout` of Node gives no function, and would fail once the work is done. */
function lackOf(value: unknown): string | undefined {
  const clock = Object(value) as Clock
  if (missingMethods(value, ['now', 'setTimeout']).length > 0) return CLOCK
  if (clock.wall !== undefined && typeof clock.wall !== 'function') return CLOCK
  const now: unknown = clock.now()
  if (!Number.isFinite(now)) return 'expected now() to give milliseconds as a finite number'
  const cancel = clock.setTimeout(() => undefined, 0)
  if (typeof (cancel as unknown) !== 'function')
    return 'expected setTimeout() to give a function that cancels it, such as systemClock of drainable/provider does'
  cancel()
  return undefined
}

/** A schema for a signal that ends something. */
export const signalOption = once(() =>
  z.custom<AbortSignal>((value) => value instanceof AbortSignal, {
    error: ({ input }) =>
      input instanceof AbortController
        ? 'expected an AbortSignal, found its controller: give controller.signal'
        : 'expected an AbortSignal',
  }),
)

/** A schema for the clock to measure by. */
export const clockOption = once(() =>
  z.custom<Clock>((value) => lackOf(value) === undefined, {
    error: ({ input }) => lackOf(input) ?? CLOCK,
  }),
)

/**
 * A schema for a duration option: written as a {@link Duration}, read in milliseconds. In none of them a bare number from
 * 1 to 999 is taken.
 */
export function durationOption(
  rule: Omit<DurationRule, 'bareSeconds'> = {},
): z.ZodMiniType<number, Duration> {
  return z.pipe(
    z.custom<Duration>(),
    z.transform((value, context) => {
      try {
        return parseDuration(value, 'it', { ...rule, bareSeconds: 'refuse' })
      } catch (error) {
        const message = (error as Error).message.replace(/^it is /, 'is ')
        context.issues.push({ code: 'custom', message, input: value })
        return z.NEVER
      }
    }),
  )
}

/** How a TLS server is verified. Give `ca` or `fingerprint256`; `insecure` switches verification off. */
export interface Tls {
  /** PEM text, or the path of a PEM file. Default: the system's authorities. */
  readonly ca?: string | undefined
  /** SHA-256 fingerprint of the server's certificate, with or without colons: only this certificate is accepted. */
  readonly fingerprint256?: string | undefined
  /** Client certificate: PEM text, or the path of a PEM file. */
  readonly cert?: string | undefined
  /** Key of the client certificate: PEM text, or the path of a PEM file. */
  readonly key?: string | undefined
  /** The name that the certificate must be valid for. Default: the URL's host. */
  readonly servername?: string | undefined
  /** Accepts any certificate. */
  readonly insecure?: true | undefined
}

/** A secret, or a function that fetches it. It is called again after a refusal, so that the secret can rotate. */
export type Secret = string | (() => string | Promise<string>)
