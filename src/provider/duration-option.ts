import * as z from 'zod'
import { parseDuration, type Duration, type DurationRule } from './duration.js'

/** A schema for a duration option: written as a {@link Duration}, read in milliseconds. */
export function durationOption(rule: DurationRule = {}): z.ZodType<number, Duration> {
  return z.custom<Duration>().transform((value, context) => {
    try {
      return parseDuration(value, 'it', rule)
    } catch (error) {
      context.addIssue({
        code: 'custom',
        message: (error as Error).message.replace(/^it is /, 'is '),
      })
      return z.NEVER
    }
  })
}
