import { z } from 'zod'
import type { Dispatcher } from 'undici'
import { parseDuration, type Duration } from '../../provider/duration.js'
import { parseOptions } from '../../provider/options.js'
import { isDrainableError } from '../../provider/error.js'
import { assertPrivate, parseHttpUrl } from '../../kit/http.js'
import { secretSchema } from '../../kit/secret.js'
import { tlsSchema } from '../../kit/tls.js'
import type { HaproxyDataplaneOptions } from './index.js'

/** The options as the provider uses them: checked, with every default filled in. */
export interface Settings {
  readonly url: string
  readonly username: string
  readonly password: HaproxyDataplaneOptions['password']
  readonly tls: HaproxyDataplaneOptions['tls']
  readonly socketPath: string | undefined
  readonly dispatcher: Dispatcher | undefined
  readonly durable: boolean
  readonly membership: 'runtime' | 'configuration'
  /** Milliseconds, or what to do without a bound. */
  readonly oldWorkers: 'wait' | 'accept' | { readonly within: number }
  readonly maintCuts: boolean | undefined
  readonly callTimeout: number
  readonly reloadTimeout: number
}

function duration(field: string, min: number): z.ZodType<number> {
  return z.custom<Duration>().transform((value, context) => {
    try {
      return parseDuration(value, field, { min })
    } catch (error) {
      context.addIssue({
        code: 'custom',
        message: isDrainableError(error) ? error.message : String(error),
      })
      return z.NEVER
    }
  })
}

const dispatcherSchema = z.custom<Dispatcher>(
  (value) => typeof value === 'object' && value !== null && 'dispatch' in value,
  'expected a dispatcher of undici, such as an Agent',
)

const schema = z.strictObject({
  url: z.string('expected a URL such as https://lb1.example:5555'),
  username: z.string().min(1, 'expected a user name'),
  password: secretSchema,
  tls: tlsSchema.exactOptional(),
  socketPath: z.string().min(1).exactOptional(),
  dispatcher: dispatcherSchema.exactOptional(),
  allowPlaintext: z.boolean().exactOptional(),
  durable: z.boolean().exactOptional(),
  membership: z.enum(['runtime', 'configuration']).exactOptional(),
  oldWorkers: z
    .union(
      [
        z.literal('wait'),
        z.literal('accept'),
        z.strictObject({ within: duration('oldWorkers.within', 1) }),
      ],
      "expected 'wait', 'accept' or { within: '30s' }",
    )
    .exactOptional(),
  maintCuts: z.boolean().exactOptional(),
  callTimeout: duration('callTimeout', 50).exactOptional(),
  reloadTimeout: duration('reloadTimeout', 1_000).exactOptional(),
})

/**
 * Checks the caller's options and fills in the defaults.
 *
 * @throws `INVALID_OPTIONS` naming what was expected
 */
export function readOptions(options: HaproxyDataplaneOptions): Settings {
  const given = parseOptions(
    schema as z.ZodType<z.output<typeof schema>>,
    options,
    'haproxyDataplane()',
  )
  const url = parseHttpUrl(given.url, 'url')
  if (given.socketPath === undefined) assertPrivate(url, given.allowPlaintext)
  return Object.freeze({
    url: given.url,
    username: given.username,
    password: given.password,
    tls: given.tls,
    socketPath: given.socketPath,
    dispatcher: given.dispatcher,
    durable: given.durable ?? false,
    membership: given.membership ?? 'runtime',
    oldWorkers: given.oldWorkers ?? 'wait',
    maintCuts: given.maintCuts,
    callTimeout: given.callTimeout ?? 5_000,
    reloadTimeout: given.reloadTimeout ?? 25_000,
  })
}
