import type { Dispatcher } from 'undici'
import { z } from 'zod'
import { parseDuration, type Duration } from '../../provider/duration.js'
import { isDrainableError } from '../../provider/error.js'
import { parseOptions } from '../../provider/options.js'
import { assertPrivate, parseHttpUrl } from '../../kit/http.js'
import { secretSchema } from '../../kit/secret.js'
import { tlsSchema } from '../../kit/tls.js'
import type { F5BigipOptions } from './index.js'

/** The options as the provider uses them: checked, with every default filled in. */
export interface Settings {
  readonly urls: readonly string[]
  readonly username: string
  readonly password: F5BigipOptions['password']
  readonly tls: F5BigipOptions['tls']
  readonly dispatcher: Dispatcher | undefined
  readonly partition: string
  readonly auth: 'token' | 'basic'
  readonly loginProvider: string
  readonly trafficGroup: string | undefined
  readonly configSync: string | undefined
  readonly save: boolean
  readonly freshness: number
  readonly minInterval: number
  readonly callTimeout: number
}

const urlSchema = z.string('expected a URL such as https://bigip1.example')

const schema = z.strictObject({
  url: z.union([urlSchema, z.array(urlSchema).min(1, 'expected at least one URL').max(8)], {
    error: 'expected a URL such as https://bigip1.example, or a list of those of a pair',
  }),
  username: z.string().min(1, 'expected a user name'),
  password: secretSchema,
  tls: tlsSchema.exactOptional(),
  dispatcher: z
    .custom<Dispatcher>(
      (value) => typeof value === 'object' && value !== null && 'dispatch' in value,
      'expected a dispatcher of undici, such as an Agent',
    )
    .exactOptional(),
  allowPlaintext: z.boolean().exactOptional(),
  partition: z
    .string()
    .regex(/^[^/~%\p{Cc}]+$/u, "expected the name of a partition without slashes, such as 'Common'")
    .exactOptional(),
  auth: z.enum(['token', 'basic'], "expected 'token' or 'basic'").exactOptional(),
  loginProvider: z.string().min(1).exactOptional(),
  trafficGroup: z.string().min(1).exactOptional(),
  configSync: z
    .strictObject({
      group: z.string().regex(/^[\w./-]+$/, "expected the name of a device group, such as 'dg1'"),
    })
    .exactOptional(),
  save: z.boolean().exactOptional(),
  freshness: duration('freshness', 0).exactOptional(),
  minInterval: duration('minInterval', 0).exactOptional(),
  callTimeout: duration('callTimeout', 50).exactOptional(),
})

function duration(field: string, min: number): z.ZodType<number> {
  return z.custom<Duration>().transform((value, context) => {
    try {
      return parseDuration(value, field, { min })
    } catch (error) {
      const message = isDrainableError(error) ? error.message : String(error)
      context.addIssue({ code: 'custom', message })
      return z.NEVER
    }
  })
}

/**
 * Checks the caller's options and fills in the defaults.
 *
 * @throws `INVALID_OPTIONS` naming what was expected
 */
export function readOptions(options: F5BigipOptions): Settings {
  const given = parseOptions(schema as z.ZodType<z.output<typeof schema>>, options, 'f5Bigip()')
  const urls = typeof given.url === 'string' ? [given.url] : given.url
  for (const [i, url] of urls.entries()) {
    const field = typeof given.url === 'string' ? 'url' : `url[${i}]`
    assertPrivate(parseHttpUrl(url, field), given.allowPlaintext, field)
  }
  return Object.freeze({
    urls,
    username: given.username,
    password: given.password,
    tls: given.tls,
    dispatcher: given.dispatcher,
    partition: given.partition ?? 'Common',
    auth: given.auth ?? 'token',
    loginProvider: given.loginProvider ?? 'tmos',
    trafficGroup: toGroup(given.trafficGroup),
    configSync: given.configSync?.group,
    save: given.save ?? false,
    freshness: given.freshness ?? 4_000,
    minInterval: given.minInterval ?? 2_000,
    callTimeout: given.callTimeout ?? 15_000,
  })
}

function toGroup(name: string | undefined): string | undefined {
  return name === undefined || name.startsWith('/') ? name : `/Common/${name}`
}
