import type { Dispatcher } from 'undici'
import * as z from 'zod'
import { loginOptions, refusePlaintext, urlOption } from '../../kit/options.js'
import type { DrainableProvider, Secret, Tls } from '../../provider/contract.js'
import type { Duration } from '../../provider/duration.js'
import { durationOption } from '../../provider/duration-option.js'
import { parseOptions } from '../../provider/options.js'

/**
 * How to treat HAProxy processes that were replaced by a reload and may still hold connections: the
 * Data Plane API shows nothing of them.
 *
 * - `wait`: one that was replaced in mid-drain stays listed as unread, so the drain is never idle;
 *   `why()` names this option
 * - `accept`: go on without them; idle is said with `verifiedIdle: false`
 * - `hard-stop-after`: as long as HAProxy's configuration says (`hard-stop-after` of its `global`
 *   section, read at each change of it; the largest value that was seen counts). Your word that the
 *   processes were started with what the file says: one that was lowered or added a moment ago says
 *   nothing of processes from before
 * - `within`: at least the `hard-stop-after` of every HAProxy process: once the present one has run for
 *   that long, no older one can be left. One below the configuration's value proves nothing
 *
 * A reload from before the drain can't be seen over this API: unless that time has passed, idle is
 * said with `verifiedIdle: false` and that reason. With `wait` a process that was replaced in mid-drain
 * ends by the configuration's `hard-stop-after` too, where that was known for 10 s before.
 */
export type OldWorkers = 'wait' | 'accept' | 'hard-stop-after' | { readonly within: Duration }

/** How {@link haproxyDataplane} reaches the Data Plane API, and what it may change there. */
export interface HaproxyDataplaneOptions {
  /** Where the API listens, without `/v2` or `/v3`; a path is a prefix of every path. */
  readonly url: string
  /** User of the API (HTTP Basic). */
  readonly username: string
  /** Its password. A function is asked again when the API refuses the last value, so that it can rotate in mid-drain. */
  readonly password: Secret
  /** How the API's certificate is known. @default the system's authorities */
  readonly tls?: Tls | undefined
  /** Unix socket of the API; the host of `url` is then only a name. */
  readonly socketPath?: string | undefined
  /** A dispatcher of undici in place of our own Agent; never closed here. */
  readonly dispatcher?: Dispatcher | undefined
  /** Send credentials over plain HTTP to hosts other than loopback. @default false */
  readonly allowPlaintext?: boolean | undefined
  /**
   * Write the drain into HAProxy's configuration too, without a reload: `weight 0` with the drain,
   * `maintenance: enabled` with the seal. A reload then keeps the member out of balancing. Both are
   * undone with the drain. @default false
   */
  readonly durable?: boolean | undefined
  /**
   * Servers that `track` a drained one go along with it. A drain is refused (`POOL_AT_MINIMUM`) where
   * that would leave one of their backends with fewer serving servers than this. `keepReady` of the
   * drain counts the drained member alone.
   *
   * @default 1
   */
  readonly keepFollowers?: number | undefined
  /**
   * Where `remove` and `add` act: in the running process (gone with the next reload), or in the
   * configuration (a removal reloads HAProxy, which resets the drains of others until they are put
   * back). @default 'runtime'
   */
  readonly membership?: 'runtime' | 'configuration' | undefined
  /** See {@link OldWorkers}. Not together with `runtime`. @default 'wait' */
  readonly oldWorkers?: OldWorkers | undefined
  /**
   * A provider over the Runtime API of the same HAProxy, such as `haproxyRuntime({ socket, master })`: the
   * eyes, while the Data Plane API stays the hands. With its master's socket the processes that a reload
   * replaced are seen until they end, so idle is proved without `hard-stop-after`; what it does about
   * those that it can't see is its own option `oldWorkers`. Only looked through; never closed here.
   */
  readonly runtime?: DrainableProvider | undefined
  /**
   * Whether maint cuts established connections (`on-marked-down shutdown-sessions`). Left out, each
   * server's configuration is asked; where it can't be read, maint counts as `unknown`.
   */
  readonly maintCuts?: boolean | undefined
  /** How long one call may take, connect included; at least 50 ms. A frozen HAProxy holds a call for 30 s. @default '5s' */
  readonly callTimeout?: Duration | undefined
  /** How long a reload that a removal needs may take until the new process is seen; at least 1 s. @default '25s' */
  readonly reloadTimeout?: Duration | undefined
}

/** What can look; which adapter made it is not asked, because adapters know nothing of each other. */
const runtimeOption = z.custom<DrainableProvider>(
  (value) =>
    typeof value === 'object' &&
    value !== null &&
    'observe' in value &&
    typeof value.observe === 'function' &&
    'describe' in value &&
    typeof value.describe === 'function',
  'expected a provider of the same HAProxy, such as haproxyRuntime({ socket, master })',
)

const schema = z
  .strictObject({
    ...loginOptions,
    url: urlOption('https://lb1.example:5555'),
    socketPath: z.string().min(1).exactOptional(),
    durable: z.boolean().default(false),
    keepFollowers: z.int().min(0).default(1),
    membership: z.enum(['runtime', 'configuration']).default('runtime'),
    oldWorkers: z
      .union(
        [
          z.literal('wait'),
          z.literal('accept'),
          z.literal('hard-stop-after'),
          z.strictObject({ within: durationOption({ min: 1, bareSeconds: 'refuse' }) }),
        ],
        "expected 'wait', 'accept', 'hard-stop-after' or { within: '30s' }",
      )
      .exactOptional(),
    runtime: runtimeOption.exactOptional(),
    maintCuts: z.boolean().exactOptional(),
    callTimeout: durationOption({ min: 50 }).default(5_000),
    reloadTimeout: durationOption({ min: 1_000 }).default(25_000),
  })
  .superRefine(refusePlaintext)
  .superRefine(({ oldWorkers, runtime }, context) => {
    if (oldWorkers === undefined || runtime === undefined) return
    const message =
      'expected one of oldWorkers and runtime: give oldWorkers to haproxyRuntime(), which sees them'
    context.addIssue({ code: 'custom', path: ['oldWorkers'], message })
  })
  .transform((options) => ({ ...options, oldWorkers: options.oldWorkers ?? ('wait' as const) }))

/** The options as the provider uses them: checked, with every default filled in, durations in milliseconds. */
export type Settings = Readonly<z.output<typeof schema>>

/** @throws `INVALID_OPTIONS` naming every wrong option */
export function readOptions(options: HaproxyDataplaneOptions): Settings {
  return parseOptions(schema, options, 'haproxyDataplane()')
}
