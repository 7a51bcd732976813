import * as z from 'zod/mini'
import type { Duration } from '../../provider/duration.js'
import { durationOption, nonEmpty, whole } from '../../provider/option-schemas.js'
import { parseOptions } from '../../provider/options.js'
import { adminAddress } from '../../kit/envoy/admin-list.js'
import type { EndpointSink, LoadReportSource } from './sources/sink.js'

/** The addresses of the admin APIs: a list, or a function that returns one. */
export type AdminAddresses = readonly string[] | (() => Promise<readonly string[]>)

/** Options of {@link envoy}. */
export interface EnvoyOptions {
  /** How endpoint sets reach the proxies. The provider closes it. */
  readonly endpoints: EndpointSink
  /**
   * The admin API of every proxy: `http://10.0.0.7:9901` or `unix:/run/envoy/admin.sock`. A function is called for
   * every look, so that a fleet can grow and shrink; a proxy that left is unread, and prevents idle, until the list
   * drops it.
   *
   * Every sink needs it except `grpcEndpoints()`, which can use load reports instead, and `restEndpoints()` with
   * `loads`.
   */
  readonly admin?: AdminAddresses | undefined
  /**
   * Load reports on their own port, `loadReports()` of `drainable/envoy/grpc`, beside any sink: proxies push their
   * counts, and a proxy that reports and is not on the `admin` list prevents idle. The provider closes it.
   * `grpcEndpoints()` takes load reports on its own port; with this option it uses only these.
   */
  readonly loads?: LoadReportSource | undefined
  /**
   * The proxies that must be there: node ids or admin addresses, or how many. A proxy that is expected and not known
   * prevents idle. Default: all that are listed or connected.
   */
  readonly expect?: readonly string[] | number | undefined
  /**
   * How to treat a proxy that cannot be seen any more: `wait`, because it may still hold work, or count it as gone
   * after a time. @default 'wait'
   */
  readonly onProxyGone?: 'wait' | { readonly after: Duration } | undefined
  /**
   * What to do with a drain that would put the cluster into panic mode, in which Envoy sends traffic to drained
   * endpoints too. @default 'refuse'
   */
  readonly onPanic?: 'refuse' | 'allow' | undefined
  /**
   * The clusters' `common_lb_config.healthy_panic_threshold` in percent, if no admin API reports it. By load reports alone
   * idle is verified only if it is 0: they do not show a panic that begins later.
   * @default 50
   */
  readonly panicThreshold?: number | undefined
  /**
   * The clusters' `common_lb_config.update_merge_window`, if no admin API reports it. Before Envoy 1.40 a drain can
   * take effect that long after its acknowledgement. @default 1 s
   */
  readonly mergeWindow?: Duration | undefined
  /**
   * The clusters' `connect_timeout`, if no admin API reports it: a connect can hide a request for that long on Envoy
   * before 1.39.3, and in load reports. @default 5 s
   */
  readonly connectTimeout?: Duration | undefined
}

const isSink = (value: unknown): value is EndpointSink =>
  typeof value === 'object' &&
  value !== null &&
  'kind' in value &&
  'publish' in value &&
  typeof value.publish === 'function' &&
  'load' in value &&
  typeof value.load === 'function'

const isSource = (value: unknown): value is LoadReportSource =>
  typeof value === 'object' && value !== null && 'loads' in value && 'open' in value

/** Without an admin API, receipts must confirm that a set was taken, and load reports must show work. */
function canDoWithoutAdmin({
  endpoints,
  loads,
}: {
  readonly endpoints: EndpointSink
  readonly loads?: LoadReportSource
}): boolean {
  return endpoints.subscribers !== undefined && (loads ?? endpoints.loads) !== undefined
}

const schema = z
  .strictObject({
    endpoints: z.custom<EndpointSink>(
      isSink,
      'expected fileEndpoints(), restEndpoints(), callbackEndpoints(), observedEndpoints() or grpcEndpoints()',
    ),
    admin: z.exactOptional(
      z.union(
        [
          z.array(adminAddress).check(z.minLength(1, 'expected at least one address')),
          z.custom<() => Promise<readonly string[]>>((value) => typeof value === 'function'),
        ],
        {
          error: (issue) =>
            Array.isArray(issue.input)
              ? undefined
              : "expected a list of addresses such as ['http://127.0.0.1:9901'], or a function that returns one",
        },
      ),
    ),
    loads: z.exactOptional(
      z.custom<LoadReportSource>(isSource, "expected loadReports() of 'drainable/envoy/grpc'"),
    ),
    expect: z.exactOptional(
      z.union(
        [whole(1), z.array(nonEmpty()).check(z.minLength(1))],
        'expected how many Envoys there are, such as 3, or a list of their node ids',
      ),
    ),
    onProxyGone: z._default(
      z.union(
        [z.literal('wait'), z.strictObject({ after: durationOption({ infinite: true }) })],
        "expected 'wait' or { after: '5m' }",
      ),
      'wait',
    ),
    onPanic: z._default(z.enum(['refuse', 'allow']), 'refuse'),
    panicThreshold: z.exactOptional(z.number().check(z.minimum(0), z.maximum(100))),
    mergeWindow: z.exactOptional(durationOption()),
    connectTimeout: z.exactOptional(durationOption()),
  })
  .check(
    z.refine((options) => options.admin !== undefined || canDoWithoutAdmin(options), {
      path: ['admin'],
      message:
        'expected the addresses of the admin APIs: without them work is not known; only grpcEndpoints(), and restEndpoints() with loads, can use load reports instead',
    }),
  )

/** The options as the provider uses them: checked, with defaults filled in, durations in milliseconds. */
export type Settings = Readonly<z.output<typeof schema>>

/** @throws `INVALID_OPTIONS` naming every wrong option */
export function readOptions(options: EnvoyOptions): Settings {
  return parseOptions(schema, options, 'envoy()')
}
