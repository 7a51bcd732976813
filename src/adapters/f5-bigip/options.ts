import type { Dispatcher } from 'undici'
import * as z from 'zod/mini'
import { loginOptions, refusePlaintext, urlsOption } from '../../kit/options.js'
import type { Secret, Tls } from '../../provider/option-schemas.js'
import type { Duration } from '../../provider/duration.js'
import { durationOption, matching, nonEmpty } from '../../provider/option-schemas.js'
import { parseOptions } from '../../provider/options.js'

/** Options of {@link f5Bigip}: how to reach the device, and what to do there beside draining. */
export interface F5BigipOptions {
  /**
   * The management address of the device, or the addresses of every unit of its device group, up to eight: only the active unit has
   * connections and counts, so with one address a failover in mid-drain leaves nothing to read.
   */
  readonly url: string | readonly string[]
  /** A user with at least the Operator role on the partition; cutting connections needs more. */
  readonly username: string
  /** Its password. A function is called for every login, so that the password can rotate in mid-drain. */
  readonly password: Secret
  /**
   * How the device's certificate is verified; the factory certificate is self-signed. @default the system's
   * authorities
   */
  readonly tls?: Tls | undefined
  /** An undici dispatcher in place of our own Agent; the provider never closes it. */
  readonly dispatcher?: Dispatcher | undefined
  /** Whether to send credentials over plain HTTP to hosts other than loopback. @default false */
  readonly allowPlaintext?: boolean | undefined
  /** The partition of names without a path. @default 'Common' */
  readonly partition?: string | undefined
  /**
   * How to log in: `token` logs in once and logs out on close; `basic` sends the password with every request.
   * @default 'token'
   */
  readonly auth?: 'token' | 'basic' | undefined
  /**
   * The name of the login provider, for LDAP, RADIUS or TACACS+ users that have their own provider. @default 'tmos'
   */
  readonly loginProvider?: string | undefined
  /**
   * The traffic group of the virtual servers in front; a unit counts as active if it is active for that group.
   * @default any
   */
  readonly trafficGroup?: string | undefined
  /**
   * Pushes each change to the other units (`config-sync to-group`). A push carries everything that is pending, so a
   * change is refused while the group is not in sync. Leave it out if autoSync is on, or if the other units are not to
   * follow. @default no push
   */
  readonly configSync?: { readonly group: string } | undefined
  /**
   * Whether to save the running configuration after a change, so that it survives a reboot; this saves all of it.
   * @default false
   */
  readonly save?: boolean | undefined
  /**
   * `forget`: before a member or node is forced offline, and before connections are cut, its persistence records are
   * deleted (those of its address, for a member of its port and pool too), so that their clients are balanced anew.
   * It needs more than the Operator role; the hints report what it deleted.
   * @default records stay until they time out
   */
  readonly persistence?: 'forget' | undefined
  /**
   * How old the device's statistics can be; the core takes two samples at least that far apart. A smaller value is for
   * simulators: on a device idle can then be said too early.
   *
   * @default '4s'
   */
  readonly freshness?: Duration | undefined
  /** The shortest pause between two looks. @default '2s' */
  readonly minInterval?: Duration | undefined
  /** The time limit for one request, including the connect; at least 50 ms. @default '15s' */
  readonly callTimeout?: Duration | undefined
}

const schema = z.pipe(
  z
    .strictObject({
      ...loginOptions,
      url: urlsOption('https://bigip1.example'),
      partition: z._default(
        matching(
          /^[^/~%\p{Cc}]+$/u,
          "expected the name of a partition without slashes, such as 'Common'",
        ),
        'Common',
      ),
      auth: z._default(z.enum(['token', 'basic']), 'token'),
      loginProvider: z._default(nonEmpty(), 'tmos'),
      trafficGroup: z.exactOptional(z.pipe(nonEmpty(), z.transform(toGroup))),
      configSync: z.exactOptional(
        z.strictObject({
          group: matching(/^[\w./-]+$/, "expected the name of a device group, such as 'dg1'"),
        }),
      ),
      save: z._default(z.boolean(), false),
      persistence: z.exactOptional(z.literal('forget', "expected 'forget'")),
      freshness: z._default(durationOption(), 4_000),
      minInterval: z._default(durationOption(), 2_000),
      callTimeout: z._default(durationOption({ min: 50 }), 15_000),
    })
    .check(z.superRefine(refusePlaintext)),
  z.transform(({ url, ...options }) => ({ ...options, urls: [url].flat() })),
)

/** The options as the provider uses them: checked, with every default filled in, durations in milliseconds. */
export type Settings = Readonly<z.output<typeof schema>>

/** @throws `INVALID_OPTIONS` naming every wrong option */
export function readOptions(options: F5BigipOptions): Settings {
  return parseOptions(schema, options, 'f5Bigip()')
}

function toGroup(name: string): string {
  return name.startsWith('/') ? name : `/Common/${name}`
}
