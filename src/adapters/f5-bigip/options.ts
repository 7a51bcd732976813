import type { Dispatcher } from 'undici'
import * as z from 'zod'
import { loginOptions, refusePlaintext, urlsOption } from '../../kit/options.js'
import type { Secret, Tls } from '../../provider/contract.js'
import type { Duration } from '../../provider/duration.js'
import { durationOption } from '../../provider/duration-option.js'
import { parseOptions } from '../../provider/options.js'

/** How {@link f5Bigip} reaches the device, and what it may do there beside draining. */
export interface F5BigipOptions {
  /**
   * Management address of the device, or those of every unit of a pair: connections and counts live on
   * the active unit, so with one address a failover in mid-drain leaves nothing to read.
   */
  readonly url: string | readonly string[]
  /** A user with at least the Operator role on the partition; cutting connections needs more. */
  readonly username: string
  /** Its password. A function is asked again for every login, so that it can rotate in mid-drain. */
  readonly password: Secret
  /** How the device's certificate is known; it is self-signed from the factory. @default the system's authorities */
  readonly tls?: Tls | undefined
  /** A dispatcher of undici in place of our own Agent; never closed here. */
  readonly dispatcher?: Dispatcher | undefined
  /** Send credentials over plain HTTP to hosts other than loopback. @default false */
  readonly allowPlaintext?: boolean | undefined
  /** Partition that names without a path are in. @default 'Common' */
  readonly partition?: string | undefined
  /** `token` logs in once and logs out on close; `basic` sends the password with every request. @default 'token' */
  readonly auth?: 'token' | 'basic' | undefined
  /** Name of the login provider, for users from LDAP, RADIUS or TACACS+ that have one of their own. @default 'tmos' */
  readonly loginProvider?: string | undefined
  /** Traffic group of the virtual servers in front; a unit counts as active where it is active for that group. @default any */
  readonly trafficGroup?: string | undefined
  /**
   * Push the change to the other unit (`config-sync to-group`). It pushes everything that is pending,
   * so a change is refused while the group is not in sync. Leave it out where autoSync is on, or where
   * the other unit is not to follow. @default no push
   */
  readonly configSync?: { readonly group: string } | undefined
  /** Save the running configuration after a change, so that it survives a reboot; saves all of it. @default false */
  readonly save?: boolean | undefined
  /**
   * `forget`: before a member or node is forced offline, and before connections are cut, its persistence
   * records are deleted (those of its address, for a member of its port and pool too), so that their
   * clients are balanced anew. Takes more than the Operator role; what it hit is among the hints.
   * @default records stay until they time out
   */
  readonly persistence?: 'forget' | undefined
  /** How old the device's statistics can be; two samples are taken at least that far apart. @default '4s' */
  readonly freshness?: Duration | undefined
  /** Shortest pause between two looks. @default '2s' */
  readonly minInterval?: Duration | undefined
  /** How long one request may take, connect included; at least 50 ms. @default '15s' */
  readonly callTimeout?: Duration | undefined
}

const schema = z
  .strictObject({
    ...loginOptions,
    url: urlsOption('https://bigip1.example'),
    partition: z
      .string()
      .regex(
        /^[^/~%\p{Cc}]+$/u,
        "expected the name of a partition without slashes, such as 'Common'",
      )
      .default('Common'),
    auth: z.enum(['token', 'basic'], "expected 'token' or 'basic'").default('token'),
    loginProvider: z.string().min(1).default('tmos'),
    trafficGroup: z.string().min(1).transform(toGroup).exactOptional(),
    configSync: z
      .strictObject({
        group: z.string().regex(/^[\w./-]+$/, "expected the name of a device group, such as 'dg1'"),
      })
      .exactOptional(),
    save: z.boolean().default(false),
    persistence: z.literal('forget', "expected 'forget'").exactOptional(),
    freshness: durationOption().default(4_000),
    minInterval: durationOption().default(2_000),
    callTimeout: durationOption({ min: 50 }).default(15_000),
  })
  .superRefine(refusePlaintext)
  .transform(({ url, ...options }) => ({ ...options, urls: [url].flat() }))

/** The options as the provider uses them: checked, with every default filled in, durations in milliseconds. */
export type Settings = Readonly<z.output<typeof schema>>

/** @throws `INVALID_OPTIONS` naming every wrong option */
export function readOptions(options: F5BigipOptions): Settings {
  return parseOptions(schema, options, 'f5Bigip()')
}

function toGroup(name: string): string {
  return name.startsWith('/') ? name : `/Common/${name}`
}
