import { z } from 'zod'
import type { Duration } from '../../provider/duration.js'
import { durationOption } from '../../provider/duration-option.js'
import { parseOptions } from '../../provider/options.js'

/** Path of a unix socket, or host and port of a TCP one. */
export type SocketAddress = string | { readonly host: string; readonly port: number }

/**
 * What to do about old workers that can't be seen: processes of before a reload that still hold work.
 *
 * - `wait`: each counts as a scope that can't be read, so a drain waits for its deadline. Where it is
 *   known at the start that they can't be seen, and an earlier reload can't be excluded, the drain is
 *   refused before any change.
 * - `{ within }`: the `hard-stop-after` of your configuration: they count as ended that long after
 *   the current process started.
 * - `accept`: go on without them; idle is then said with `verifiedIdle: false`.
 */
export type OldWorkers = 'wait' | 'accept' | { readonly within: Duration }

/** How to reach one HAProxy, and what to do about what can't be seen of it. */
export interface HaproxyRuntimeOptions {
  /**
   * The stats socket: a `stats socket /path level admin` of the `global` section, or host and port of
   * a `stats socket ipv4@... level admin`. Level operator is enough to look.
   */
  readonly socket: SocketAddress
  /**
   * The master socket (`haproxy -W -S /path,level,admin`): the way to old workers, which a reload
   * leaves behind with their connections. Looked for by itself on 2.6 and 3.0, where the process says.
   */
  readonly master?: SocketAddress | undefined
  /** What to do about old workers that can't be seen. @default 'wait' */
  readonly oldWorkers?: OldWorkers | undefined
  /**
   * Your servers have `on-marked-down shutdown-sessions`: maintenance cuts their connections. HAProxy
   * does not tell, so say it: the door is then not closed by itself after idle, and `hold: 'maint'`
   * and `escalateAfter` want `onTimeout: 'terminate'` beside them.
   *
   * @default false
   */
  readonly maintCuts?: boolean | undefined
  /**
   * Servers that `track` a drained one go along with it. A drain is refused (`POOL_AT_MINIMUM`) where
   * that would leave one of their backends with fewer serving servers than this. `keepReady` of the
   * drain counts the drained member alone.
   *
   * @default 1
   */
  readonly keepFollowers?: number | undefined
  /** Longest time a connection may take, at least 10 ms. @default '2s' */
  readonly connectTimeout?: Duration | undefined
  /**
   * Longest silence while an answer is owed, at least 10 ms: HAProxy is frozen, or its `stats maxconn`
   * is used up.
   *
   * @default '5s'
   */
  readonly replyTimeout?: Duration | undefined
  /**
   * Connections at once, of the 10 that `stats maxconn` allows by default. One more is kept open
   * during a drain where there is no master socket.
   *
   * @default 4
   */
  readonly maxConnections?: number | undefined
}

const address = z.union(
  [
    z
      .string()
      .min(1)
      .regex(/^[^\0\n]*$/),
    z.strictObject({ host: z.string().min(1), port: z.int().min(1).max(65_535) }),
  ],
  "expected the path of a unix socket, or { host, port } of a 'stats socket ipv4@...'",
)

const schema = z.strictObject({
  socket: address,
  master: address.exactOptional(),
  oldWorkers: z
    .union(
      [
        z.literal('wait'),
        z.literal('accept'),
        z.strictObject({ within: durationOption({ min: 10 }) }),
      ],
      "expected 'wait', 'accept' or { within: '30s' }",
    )
    .default('wait'),
  maintCuts: z.boolean().default(false),
  keepFollowers: z.int().min(0).default(1),
  connectTimeout: durationOption({ min: 10 }).default(2_000),
  replyTimeout: durationOption({ min: 10 }).default(5_000),
  maxConnections: z.int().min(1).max(100).default(4),
})

/** The options as the provider uses them: checked, with every default filled in, durations in milliseconds. */
export type Settings = Readonly<z.output<typeof schema>>

/** @throws `INVALID_OPTIONS` naming every wrong option */
export function readOptions(options: HaproxyRuntimeOptions): Settings {
  return parseOptions(schema, options, 'haproxyRuntime()')
}
