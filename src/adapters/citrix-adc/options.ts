import type { Dispatcher } from 'undici'
import { z } from 'zod'
import { type Duration, parseDuration } from '../../provider/duration.js'
import { isDrainableError } from '../../provider/error.js'
import { assertPrivate, parseHttpUrl } from '../../kit/http.js'
import { secretSchema } from '../../kit/secret.js'
import { tlsSchema } from '../../kit/tls.js'

const url = z.string().superRefine((value, ctx) => {
  try {
    parseHttpUrl(value, 'url')
  } catch (error) {
    const message = isDrainableError(error) ? error.message.replace(/^url: /, '') : String(error)
    ctx.addIssue({ code: 'custom', message })
  }
})

/** A duration between two bounds, kept as the caller wrote it. */
function duration(field: string, min: number, max: number) {
  return z.custom<Duration>().superRefine((value, ctx) => {
    try {
      if (parseDuration(value, field, { min }) <= max) return
      ctx.addIssue({ code: 'custom', message: `expected at most ${max} ms` })
    } catch (error) {
      const message = isDrainableError(error) ? error.message : String(error)
      ctx.addIssue({ code: 'custom', message })
    }
  })
}

/** What `citrixAdc()` takes. */
export const optionsSchema = z
  .strictObject({
    url: z.union([url, z.array(url).min(1, 'expected at least one address')]),
    username: z.string().min(1, 'expected a user name'),
    password: secretSchema,
    auth: z.enum(['session', 'headers']).default('session'),
    sessionTimeout: duration('sessionTimeout', 300_000, 86_400_000).default('15m'),
    partition: z.string().min(1).exactOptional(),
    save: z.boolean().default(false),
    desiredState: z.enum(['refuse', 'try']).default('refuse'),
    freshness: duration('freshness', 0, 3_600_000).default('8s'),
    callTimeout: duration('callTimeout', 1, 600_000).default('10s'),
    tls: tlsSchema.exactOptional(),
    allowPlaintext: z.boolean().exactOptional(),
    dispatcher: z
      .custom<Dispatcher>(
        (value) =>
          typeof value === 'object' &&
          value !== null &&
          'dispatch' in value &&
          typeof value.dispatch === 'function',
        'expected a dispatcher of undici',
      )
      .exactOptional(),
  })
  .superRefine((options, ctx) => {
    if (options.partition !== undefined && options.auth === 'headers') {
      ctx.addIssue({
        code: 'custom',
        path: ['partition'],
        message: "a partition is chosen for a session, expected auth: 'session'",
      })
    }
    for (const [i, each] of [options.url].flat().entries()) {
      try {
        assertPrivate(new URL(each), options.allowPlaintext)
      } catch (error) {
        if (!isDrainableError(error)) continue
        const path = Array.isArray(options.url) ? ['url', i] : ['url']
        ctx.addIssue({ code: 'custom', path, message: error.message.replace(/^url: /, '') })
      }
    }
  })

/** The options with every default filled in. */
export type ParsedOptions = z.output<typeof optionsSchema>
