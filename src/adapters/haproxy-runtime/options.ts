import * as z from 'zod/mini'
import { tlsSchema } from '../../kit/tls.js'
import { durationOption, nonEmpty, whole, type Tls } from '../../provider/option-schemas.js'
import type { Duration } from '../../provider/duration.js'
import { once, parseOptions } from '../../provider/options.js'
import { type Address, parseAddress, tcpAddress } from './codec/address.js'
import { quote } from '../../provider/quote.js'

/**
 * The address of a socket: the path of a unix socket, or host and port of a TCP socket. A text can also have the form
 * that HAProxy uses: `unix@/path`, `abns@name`, `host:port`, `ipv4@host:port`, `ipv6@[address]:port`.
 */
export type SocketAddress = string | { readonly host: string; readonly port: number }

/**
 * How to treat processes from before a reload that can't be seen, or that can be seen and through which clients can
 * still reach a drained server (an old worker takes no more changes, so a seal does not reach it).
 *
 * - `wait`: they prevent idle. A drain waits until they have ended, or until no connection is left in them that could
 *   bring another request, at the longest until its deadline. A process that was seen to be replaced and can't be read
 *   prevents idle for as long as the provider lives. If it is known at the start that old workers of a master can't be
 *   seen, and an earlier reload can't be excluded, the drain is refused before any change.
 * - `{ within }`: the `hard-stop-after` of your configuration: they count as ended that long after the process that
 *   replaced them started. A process that can still be seen does not count as ended: idle is then reported with
 *   `sealed: false` and `verifiedIdle: false`.
 * - `accept`: go on without them. Idle is then reported with `verifiedIdle: false`, and with `sealed: false` if
 *   clients are seen to be able to come.
 */
export type OldWorkers = 'wait' | 'accept' | { readonly within: Duration }

/** Options of {@link haproxyRuntime}: how to reach one HAProxy, and how to treat processes that can't be seen. */
export interface HaproxyRuntimeOptions {
  /**
   * The stats socket: a `stats socket /path level admin` of the `global` section, or host and port of a `stats socket
   * ipv4@... level admin`. Level operator is enough to read.
   */
  readonly socket: SocketAddress
  /**
   * The master socket (`haproxy -W -S /path`; no level is needed): it reaches the old workers, which a reload leaves
   * behind with their connections. On 2.6 and 3.0 the provider finds it by itself, because the process reports it.
   * Without it, idle is not verified, unless the process has run for longer than `oldWorkers.within`.
   */
  readonly master?: SocketAddress | undefined
  /**
   * TLS for a connection to the stats socket. HAProxy ignores `ssl` on the `stats socket` line itself (seen on 2.6,
   * 3.0, 3.2, 3.4), so put a frontend with `bind ... ssl crt ...` before it, with a backend that has the server
   * `unix@/path`; with `verify required`, HAProxy wants a client certificate too. Not used for `master`.
   */
  readonly tls?: Tls | undefined
  /** How to treat old workers that can't be seen, or that clients can still use. @default 'wait' */
  readonly oldWorkers?: OldWorkers | undefined
  /**
   * Whether your servers have `on-marked-down shutdown-sessions`, so that maintenance cuts their connections. HAProxy
   * does not report it. If `true`, an idle member is not sealed by default, and `hold: 'maint'` and `escalateAfter`
   * need `onTimeout: 'terminate'` as well.
   *
   * @default false
   */
  readonly maintCuts?: boolean | undefined
  /**
   * How many serving servers each backend must keep that has servers which `track` the drained one: they are drained
   * along with it. A drain that would leave fewer is refused (`POOL_AT_MINIMUM`). `keepReady` of the drain counts
   * only the drained member.
   *
   * @default 1
   */
  readonly keepFollowers?: number | undefined
  /** The time limit for a connection, at least 10 ms. @default '2s' */
  readonly connectTimeout?: Duration | undefined
  /**
   * The time limit for a complete answer, at least 10 ms: a longer one means that HAProxy is frozen, or its `stats
   * maxconn` is used up.
   *
   * @default '5s'
   */
  readonly replyTimeout?: Duration | undefined
  /**
   * The most connections at once; `stats maxconn` allows 10 by default. With a master socket, one more is kept open
   * from the first look at a member.
   *
   * @default 4
   */
  readonly maxConnections?: number | undefined
}

const address = z.pipe(
  z.union([nonEmpty(), z.strictObject({ host: nonEmpty(), port: whole(1, 65_535) })], {
    error: ({ input }) =>
      input instanceof URL
        ? `is a URL: write its path, '${quote(input.pathname)}'`
        : "expected the path of a unix socket, or { host, port } of a 'stats socket ipv4@...'",
  }),
  z.transform((value, context): Address => {
    const read =
      typeof value === 'string' ? parseAddress(value) : tcpAddress(value.host, value.port)
    if (typeof read !== 'string') return read
    context.issues.push({ code: 'custom', message: read, input: value })
    return z.NEVER
  }),
)

const schema = once(() =>
  z.strictObject({
    socket: address,
    master: z.exactOptional(address),
    tls: z.exactOptional(tlsSchema),
    oldWorkers: z._default(
      z.union(
        [
          z.literal('wait'),
          z.literal('accept'),
          z.strictObject({ within: durationOption({ min: 10 }) }),
        ],
        "expected 'wait', 'accept' or { within: '30s' }",
      ),
      'wait',
    ),
    maintCuts: z._default(z.boolean(), false),
    keepFollowers: z._default(whole(0), 1),
    connectTimeout: z._default(durationOption({ min: 10 }), 2_000),
    replyTimeout: z._default(durationOption({ min: 10 }), 5_000),
    maxConnections: z._default(whole(1, 100), 4),
  }),
)

/** The options as the provider uses them: checked, with every default filled in, durations in milliseconds. */
export type Settings = Readonly<z.output<ReturnType<typeof schema>>>

/** @throws `INVALID_OPTIONS` naming every wrong option */
export function readOptions(options: HaproxyRuntimeOptions): Settings {
  return parseOptions(schema(), options, 'haproxyRuntime()')
}
