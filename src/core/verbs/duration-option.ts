import { z } from 'zod'
import { parseDuration, type DurationRule } from '../../provider/duration.js'

/** A duration among options, in milliseconds. */
export function durationOption(rule: DurationRule = {}): z.ZodType<number> {
  return z.unknown().transform((value, context) => {
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
