import type { Dispatcher } from 'undici'
import * as z from 'zod'
import { loginOptions, refusePlaintext, urlsOption } from '../../kit/options.js'
import type { Secret, Tls } from '../../provider/contract.js'
import type { Duration } from '../../provider/duration.js'
import { durationOption } from '../../provider/duration-option.js'
import { parseOptions } from '../../provider/options.js'

/** How to reach an appliance, and what to do there. */
export interface CitrixAdcOptions {
  /**
   * Management address: an NSIP, a SNIP with management access, or a cluster's own address. Of a pair
   * give both NSIPs, or the SNIP, which always reaches the primary.
   */
  readonly url: string | readonly string[]
  /** User of the appliance; the docs list the commands it must be allowed. */
  readonly username: string
  /** Its password, or a function that fetches it, asked again at each login. */
  readonly password: Secret
  /**
   * `session` logs in once, shares the session and logs out at the end; `headers` sends the password
   * with each request, leaves no session behind, and cannot choose a partition.
   *
   * @default 'session'
   */
  readonly auth?: 'session' | 'headers' | undefined
  /**
   * How long the appliance keeps our session when nothing is asked: what is left of it where this
   * process is killed. From 5 minutes to 24 hours. Where the appliance allows less, its own figure holds.
   *
   * @default '15m'
   */
  readonly sessionTimeout?: Duration | undefined
  /** Partition to work in. @default the default partition */
  readonly partition?: string | undefined
  /**
   * Save the configuration after each change. It writes the whole running configuration, other
   * people's changes too. Without it a reboot forgets a drain, and a drain that is held puts it back.
   *
   * @default false
   */
  readonly save?: boolean | undefined
  /**
   * Groups whose members are kept by a desired state (`autoscale` API) or by DNS: a change of one
   * member is refused here, or tried.
   *
   * @default 'refuse'
   */
  readonly desiredState?: 'refuse' | 'try' | undefined
  /**
   * `forget`: before a member is disabled without grace (a hold to maint, a cut) the persistence entries
   * of the virtual servers it is bound to are deleted, those of clients of other members too: these are
   * balanced anew. Persistence by a cookie that the appliance inserts has no entries.
   *
   * @default 'keep'
   */
  readonly persistence?: 'keep' | 'forget' | undefined
  /**
   * How old the appliance's counts can be. They are repeated for about seven seconds; a smaller value
   * is for simulators.
   *
   * @default '8s'
   */
  readonly freshness?: Duration | undefined
  /** How long one request may take, connecting included. @default '10s' */
  readonly callTimeout?: Duration | undefined
  /** How the appliance's certificate is verified. @default the system's authorities */
  readonly tls?: Tls | undefined
  /** Send the password over plain HTTP to a host that is not this one. @default false */
  readonly allowPlaintext?: boolean | undefined
  /** A dispatcher of undici's to send requests with. It wins over `tls`, and is never closed here. */
  readonly dispatcher?: Dispatcher | undefined
}

const schema = z
  .strictObject({
    ...loginOptions,
    url: urlsOption('https://10.0.0.11'),
    auth: z.enum(['session', 'headers']).default('session'),
    sessionTimeout: durationOption({ min: 300_000, max: 86_400_000 }).default(900_000),
    partition: z.string().min(1).exactOptional(),
    save: z.boolean().default(false),
    desiredState: z.enum(['refuse', 'try']).default('refuse'),
    persistence: z.enum(['keep', 'forget']).default('keep'),
    freshness: durationOption({ max: 3_600_000 }).default(8_000),
    callTimeout: durationOption({ min: 50, max: 600_000 }).default(10_000),
  })
  .refine((options) => options.partition === undefined || options.auth === 'session', {
    path: ['partition'],
    message: "a partition is chosen for a session, expected auth: 'session'",
  })
  .superRefine(refusePlaintext)
  .transform(({ url, ...options }) => ({ ...options, urls: [url].flat() }))

/** The options as the provider uses them: checked, with every default filled in, durations in milliseconds. */
export type Settings = Readonly<z.output<typeof schema>>

/** @throws `INVALID_OPTIONS` naming every wrong option */
export function readOptions(options: CitrixAdcOptions): Settings {
  return parseOptions(schema, options, 'citrixAdc()')
}
