import * as z from 'zod'
import { tlsSchema } from '../../kit/tls.js'
import type { Tls } from '../../provider/contract.js'
import type { Duration } from '../../provider/duration.js'
import { durationOption } from '../../provider/duration-option.js'
import { parseOptions } from '../../provider/options.js'
import { type Address, parseAddress, tcpAddress } from './codec/address.js'
import { once } from '../../provider/once.js'

/**
 * Path of a unix socket, or host and port of a TCP one; as a text also the way HAProxy writes it:
 * `unix@/path`, `abns@name`, `host:port`, `ipv4@host:port`, `ipv6@[address]:port`.
 */
export type SocketAddress = string | { readonly host: string; readonly port: number }

/**
 * What to do about processes from before a reload that can't be seen, or that can be seen and through which clients
 * can still come to a drained server (an old worker takes no more changes, so a seal does not reach it).
 *
 * - `wait`: they stand in the way of idle, so a drain waits until they have ended, or no connection is
 *   left in them that could bring another request; at the longest for its deadline. Where it is known
 *   at the start that old workers of a master can't be seen, and an earlier reload can't be excluded,
 *   the drain is refused before any change.
 * - `{ within }`: the `hard-stop-after` of your configuration: they count as ended that long after
 *   the process that replaced them started. One that can be seen all the same does not: idle is then said
 *   with `sealed: false` and `verifiedIdle: false`.
 * - `accept`: go on without them; idle is then said with `verifiedIdle: false`, and `sealed: false`
 *   where it is seen that clients can still come.
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
  /**
   * For a way to the stats socket that speaks TLS: HAProxy ignores `ssl` on the `stats socket` line itself
   * (seen on 2.6, 3.0, 3.2, 3.4), so a frontend with `bind ... ssl crt ...` stands before it, whose backend has
   * the server `unix@/path`; with `verify required` a client certificate is wanted too. It is not used for `master`.
   */
  readonly tls?: Tls | undefined
  /** What to do about old workers that can't be seen, or whose door can't be shut. @default 'wait' */
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
   * Longest time an answer may take as a whole, at least 10 ms: beyond it HAProxy is frozen, or its
   * `stats maxconn` is used up.
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

const address = z
  .union(
    [
      z.string().min(1),
      z.strictObject({ host: z.string().min(1), port: z.int().min(1).max(65_535) }),
    ],
    "expected the path of a unix socket, or { host, port } of a 'stats socket ipv4@...'",
  )
  .transform((value, context): Address => {
    const read =
      typeof value === 'string' ? parseAddress(value) : tcpAddress(value.host, value.port)
    if (typeof read !== 'string') return read
    context.addIssue({ code: 'custom', message: read })
    return z.NEVER
  })

const schema = once(() =>
  z.strictObject({
    socket: address,
    master: address.exactOptional(),
    tls: tlsSchema.exactOptional(),
    oldWorkers: z
      .union(
        [
          z.literal('wait'),
          z.literal('accept'),
          z.strictObject({ within: durationOption({ min: 10, bareSeconds: 'refuse' }) }),
        ],
        "expected 'wait', 'accept' or { within: '30s' }",
      )
      .default('wait'),
    maintCuts: z.boolean().default(false),
    keepFollowers: z.int().min(0).default(1),
    connectTimeout: durationOption({ min: 10 }).default(2_000),
    replyTimeout: durationOption({ min: 10 }).default(5_000),
    maxConnections: z.int().min(1).max(100).default(4),
  }),
)

/** The options as the provider uses them: checked, with every default filled in, durations in milliseconds. */
export type Settings = Readonly<z.output<ReturnType<typeof schema>>>

/** @throws `INVALID_OPTIONS` naming every wrong option */
export function readOptions(options: HaproxyRuntimeOptions): Settings {
  return parseOptions(schema(), options, 'haproxyRuntime()')
}
