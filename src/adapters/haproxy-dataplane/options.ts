import type { Dispatcher } from 'undici'
import * as z from 'zod/mini'
import { loginOptions, pathOption, refusePlaintext, urlOption } from '../../kit/options.js'
import type { Secret, Tls } from '../../provider/option-schemas.js'
import type { DrainableProvider } from '../../provider/contract.js'
import type { Duration } from '../../provider/duration.js'
import { durationOption, whole } from '../../provider/option-schemas.js'
import { parseOptions } from '../../provider/options.js'

/**
 * How to treat HAProxy processes that a reload replaced and that may still hold connections: the Data Plane API does
 * not show them.
 *
 * - `wait`: a process that was replaced in mid-drain stays listed as unread, so the drain is never idle; `why()`
 *   names this option
 * - `accept`: go on without them; idle is reported with `verifiedIdle: false`
 * - `within`: at least the `hard-stop-after` that every HAProxy process was started with (Data Plane API 2.9, 3.2 and
 *   3.4: a later value in the file does not bind it). Once the present one has run for that long and a second, no older
 *   one can be left. A time below the largest value that the configuration was seen to have proves nothing
 *
 * This API does not show a reload from before the provider's first look: unless that time has passed, idle is reported
 * with `verifiedIdle: false` and that reason. A process that was seen to be replaced is treated so by every drain that begins
 * within a minute.
 */
export type OldWorkers = 'wait' | 'accept' | { readonly within: Duration }

/** Options of {@link haproxyDataplane}: how to reach the Data Plane API, and what to change there. */
export interface HaproxyDataplaneOptions {
  /** The URL of the API, without `/v2` or `/v3`; its path becomes a prefix of every path. */
  readonly url: string
  /** User of the API (HTTP Basic). */
  readonly username: string
  /**
   * Its password. A function is called again when the API refuses the last value, so that it can rotate in mid-drain.
   */
  readonly password: Secret
  /** How the API's certificate is verified. @default the system's authorities */
  readonly tls?: Tls | undefined
  /** The unix socket of the API; the host of `url` is then only a name. */
  readonly socketPath?: string | undefined
  /** An undici dispatcher in place of our own Agent; the provider never closes it. */
  readonly dispatcher?: Dispatcher | undefined
  /** Whether to send credentials over plain HTTP to hosts other than loopback. @default false */
  readonly allowPlaintext?: boolean | undefined
  /**
   * Whether to write the drain into HAProxy's configuration too, without a reload: `weight 0` with the drain,
   * `maintenance: enabled` with the seal. The member then stays out of balancing after a reload. An undo of the drain
   * undoes both. @default false
   */
  readonly durable?: boolean | undefined
  /**
   * What confirms that a durable drain is undone. A reload that succeeded in mid-drain has taken its marks into the
   * API's last good file, which a reload that fails puts back. `reload`: an undo then asks for a reload of its own
   * and waits for it, {@link HaproxyDataplaneOptions.reloadTimeout} at most; it resets drains that are not durable
   * until they are put back. Default: none, `hints` of the member tell of it. Only with
   * {@link HaproxyDataplaneOptions.durable}.
   */
  readonly confirm?: 'reload' | undefined
  /**
   * How many serving servers each backend must keep that has servers which `track` the drained one: they are drained
   * along with it. A drain that would leave fewer is refused (`POOL_AT_MINIMUM`). `keepReady` of the drain counts
   * only the drained member.
   *
   * @default 1
   */
  readonly keepFollowers?: number | undefined
  /**
   * Where `remove` and `add` act: in the running process (lost at the next reload), or in the configuration (a
   * removal reloads HAProxy, which resets other drains until they are put back; the removals of one call share one
   * transaction and one reload). @default 'runtime'
   */
  readonly membership?: 'runtime' | 'configuration' | undefined
  /** How to treat replaced processes, see {@link OldWorkers}. Not allowed together with `runtime`. @default 'wait' */
  readonly oldWorkers?: OldWorkers | undefined
  /**
   * A provider over the Runtime API of the same HAProxy, such as `haproxyRuntime({ socket, master })`, for reads
   * only; changes still go through the Data Plane API. With the master's socket it sees replaced processes until they
   * end, so idle is proved without `within`; its own option `oldWorkers` covers processes that it can't see.
   * This provider never closes it.
   */
  readonly runtime?: DrainableProvider | undefined
  /**
   * Whether maint cuts established connections (`on-marked-down shutdown-sessions`). Default: each server's
   * configuration is read; if it can't be read, maint counts as `unknown`.
   */
  readonly maintCuts?: boolean | undefined
  /**
   * The time limit for one call, including the connect; at least 50 ms. A frozen HAProxy holds a call for 30 s.
   * @default '5s'
   */
  readonly callTimeout?: Duration | undefined
  /** The time limit for a reload that a removal needs, until the new process is seen; at least 1 s. @default '25s' */
  readonly reloadTimeout?: Duration | undefined
}

/** Accepts any provider that can look: adapters do not know each other. */
const runtimeOption = z.custom<DrainableProvider>(
  (value: unknown) =>
    typeof value === 'object' &&
    value !== null &&
    'observe' in value &&
    typeof value.observe === 'function' &&
    'describe' in value &&
    typeof value.describe === 'function',
  'expected a provider of the same HAProxy, such as haproxyRuntime({ socket, master })',
)

const schema = z.pipe(
  z
    .strictObject({
      ...loginOptions,
      url: urlOption('https://lb1.example:5555'),
      socketPath: z.exactOptional(pathOption()),
      durable: z._default(z.boolean(), false),
      confirm: z.exactOptional(z.literal('reload')),
      keepFollowers: z._default(whole(0), 1),
      membership: z._default(z.enum(['runtime', 'configuration']), 'runtime'),
      oldWorkers: z.exactOptional(
        z.union(
          [
            z.literal('wait'),
            z.literal('accept'),
            z.strictObject({ within: durationOption({ min: 1 }) }),
          ],
          "expected 'wait', 'accept' or { within: '30s' }",
        ),
      ),
      runtime: z.exactOptional(runtimeOption),
      maintCuts: z.exactOptional(z.boolean()),
      callTimeout: z._default(durationOption({ min: 50 }), 5_000),
      reloadTimeout: z._default(durationOption({ min: 1_000 }), 25_000),
    })
    .check(
      z.superRefine(refusePlaintext),
      z.superRefine(({ confirm, durable }, context) => {
        if (confirm === undefined || durable) return
        const message =
          'expected durable: true beside it: no other drain writes marks into the file'
        context.addIssue({ code: 'custom', path: ['confirm'], message })
      }),
      z.superRefine(({ oldWorkers, runtime }, context) => {
        if (oldWorkers === undefined || runtime === undefined) return
        const message =
          'expected one of oldWorkers and runtime: give oldWorkers to haproxyRuntime(), which sees them'
        context.addIssue({ code: 'custom', path: ['oldWorkers'], message })
      }),
    ),
  z.transform((options) => ({ ...options, oldWorkers: options.oldWorkers ?? ('wait' as const) })),
)

/** The options as the provider uses them: checked, with every default filled in, durations in milliseconds. */
export type Settings = Readonly<z.output<typeof schema>>

/** @throws `INVALID_OPTIONS` naming every wrong option */
export function readOptions(options: HaproxyDataplaneOptions): Settings {
  return parseOptions(schema, options, 'haproxyDataplane()')
}
