import type { Dispatcher } from 'undici'
import * as z from 'zod/mini'
import { loginOptions, refusePlaintext, urlsOption } from '../../kit/options.js'
import type { Secret, Tls } from '../../provider/option-schemas.js'
import type { Duration } from '../../provider/duration.js'
import { durationOption, nonEmpty } from '../../provider/option-schemas.js'
import { parseOptions } from '../../provider/options.js'

/** Options of {@link citrixAdc}: how to reach an appliance, and what to do there. */
export interface CitrixAdcOptions {
  /**
   * The management address: an NSIP, a SNIP with management access, or a cluster's own address. For a pair, give both
   * NSIPs, or the SNIP, which always reaches the primary.
   */
  readonly url: string | readonly string[]
  /** The user on the appliance; the docs list the commands that it must be allowed to run. */
  readonly username: string
  /** Its password, or a function that fetches it and is called at each login. */
  readonly password: Secret
  /**
   * How to log in: `session` logs in once, shares the session and logs out at the end; `headers` sends the password
   * with each request, leaves no session behind, and cannot choose a partition.
   *
   * @default 'session'
   */
  readonly auth?: 'session' | 'headers' | undefined
  /**
   * How long the appliance keeps our session without requests, for instance after this process was killed. From 5
   * minutes to 24 hours. If the appliance allows less, its own limit applies.
   *
   * @default '15m'
   */
  readonly sessionTimeout?: Duration | undefined
  /** The partition to work in. @default the default partition */
  readonly partition?: string | undefined
  /**
   * Whether to save the configuration after each change. This writes the whole running configuration, including the
   * changes of other clients. Without it, a reboot forgets a drain, and a held drain puts it back.
   *
   * @default false
   */
  readonly save?: boolean | undefined
  /**
   * Whether to refuse or to try a change of one member in a group whose members a desired state (`autoscale` API) or
   * DNS maintains.
   *
   * @default 'refuse'
   */
  readonly desiredState?: 'refuse' | 'try' | undefined
  /**
   * What to do with persistence entries. `forget`: before a member is disabled without grace (a hold to maint, a
   * cut), the provider deletes the entries of the virtual servers that it is bound to, including those for other
   * members: all these clients are balanced anew. Persistence by a cookie that the appliance inserts has no entries.
   *
   * @default 'keep'
   */
  readonly persistence?: 'keep' | 'forget' | undefined
  /**
   * How old the appliance's counts can be. The appliance repeats them for about seven seconds; a smaller value is for
   * simulators.
   *
   * @default '8s'
   */
  readonly freshness?: Duration | undefined
  /** The shortest pause between two looks. @default '1s', as often as the appliance looks at its members */
  readonly minInterval?: Duration | undefined
  /** The time limit for one request, including the connect. @default '10s' */
  readonly callTimeout?: Duration | undefined
  /** How the appliance's certificate is verified. @default the system's authorities */
  readonly tls?: Tls | undefined
  /** Whether to send the password over plain HTTP to hosts other than loopback. @default false */
  readonly allowPlaintext?: boolean | undefined
  /** An undici dispatcher for the requests. It takes precedence over `tls`, and the provider never closes it. */
  readonly dispatcher?: Dispatcher | undefined
}

const schema = z.pipe(
  z
    .strictObject({
      ...loginOptions,
      url: urlsOption('https://10.0.0.11'),
      auth: z._default(z.enum(['session', 'headers']), 'session'),
      sessionTimeout: z._default(durationOption({ min: 300_000, max: 86_400_000 }), 900_000),
      partition: z.exactOptional(nonEmpty()),
      save: z._default(z.boolean(), false),
      desiredState: z._default(z.enum(['refuse', 'try']), 'refuse'),
      persistence: z._default(z.enum(['keep', 'forget']), 'keep'),
      freshness: z._default(durationOption({ max: 3_600_000 }), 8_000),
      minInterval: z.exactOptional(durationOption({ max: 3_600_000 })),
      callTimeout: z._default(durationOption({ min: 50, max: 600_000 }), 10_000),
    })
    .check(
      z.refine((options) => options.partition === undefined || options.auth === 'session', {
        path: ['partition'],
        message: "a partition is chosen for a session, expected auth: 'session'",
      }),
      z.superRefine(refusePlaintext),
      z.superRefine(({ auth, username, password }, context) => {
        if (auth !== 'headers') return
        const refuse = (field: string, message: string | undefined): void => {
          if (message !== undefined) context.addIssue({ code: 'custom', path: [field], message })
        }
        refuse('username', whyNoHeader(username))
        if (typeof password === 'string') refuse('password', whyNoHeader(password))
      }),
    ),
  z.transform(({ url, ...options }) => ({ ...options, urls: [url].flat() })),
)

/** Why a text can't be sent in a header as it is; undefined if it can. */
export function whyNoHeader(text: string): string | undefined {
  if (text.trim() !== text)
    return "begins or ends with a space, which a header loses: set auth: 'session', or change it"
  if (/^[\x20-\x7e\x80-\xff]*$/.test(text)) return undefined
  return "has a character that no header has: set auth: 'session', or change it"
}

/** The options as the provider uses them: checked, with every default filled in, durations in milliseconds. */
export type Settings = Readonly<z.output<typeof schema>>

/** @throws `INVALID_OPTIONS` naming every wrong option */
export function readOptions(options: CitrixAdcOptions): Settings {
  return parseOptions(schema, options, 'citrixAdc()')
}
