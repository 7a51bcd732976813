import * as z from 'zod'
import type { Duration } from '../../provider/duration.js'
import { durationOption } from '../../provider/duration-option.js'
import { isDrainableError } from '../../provider/error.js'
import { parseOptions } from '../../provider/options.js'
import { parseAdminAddress } from './session/admin-client.js'
import type { EndpointSink } from './sources/sink.js'
import type { LoadReportSource } from './sources/with-loads.js'

/** The addresses of the admin APIs, or a function that returns them. */
export type AdminAddresses = readonly string[] | (() => Promise<readonly string[]>)

/** Options of {@link envoy}. */
export interface EnvoyOptions {
  /** How endpoint sets reach the proxies. It is closed with the provider. */
  readonly endpoints: EndpointSink
  /**
   * The admin API of every proxy: `http://10.0.0.7:9901` or `unix:/run/envoy/admin.sock`. A function
   * is asked at every look, so that a fleet can grow and shrink; a proxy that left stays unknown,
   * and keeps members from being idle, until the list drops it.
   *
   * Needed by every sink but `grpcEndpoints()`, which can do with load reports, and `restEndpoints()` with `loads`.
   */
  readonly admin?: AdminAddresses | undefined
  /**
   * Load reports on a port of their own, `loadReports()` of `drainable/envoy/grpc`, beside any sink: counts are pushed,
   * and a proxy that reports and is not on the `admin` list keeps members from being idle. Closed with the provider.
   * `grpcEndpoints()` takes them on its own port; with this option it goes by these alone.
   */
  readonly loads?: LoadReportSource | undefined
  /**
   * Who must be there: node ids or admin addresses, or how many. A proxy that is expected and not
   * known keeps members from being idle. Default: whoever is listed or connected.
   */
  readonly expect?: readonly string[] | number | undefined
  /**
   * A proxy that cannot be seen any more: `wait` (it may still hold work), or it counts as gone
   * after that long. @default 'wait'
   */
  readonly onProxyGone?: 'wait' | { readonly after: Duration } | undefined
  /**
   * A drain that would put the cluster into panic mode, in which Envoy sends traffic to drained
   * endpoints too. @default 'refuse'
   */
  readonly onPanic?: 'refuse' | 'allow' | undefined
  /**
   * The clusters' `common_lb_config.healthy_panic_threshold` in percent, where no admin API tells it.
   * @default 50
   */
  readonly panicThreshold?: number | undefined
  /**
   * The clusters' `common_lb_config.update_merge_window`, where no admin API tells it. Before Envoy
   * 1.40 a drain may take that long after its acknowledgement. @default 1 s
   */
  readonly mergeWindow?: Duration | undefined
  /**
   * The clusters' `connect_timeout`, where no admin API tells it: for that long a connect can hide
   * a request on Envoy before 1.39.3, and in load reports. @default 5 s
   */
  readonly connectTimeout?: Duration | undefined
}

const address = z.string().superRefine((value, ctx) => {
  try {
    parseAdminAddress(value)
  } catch (error) {
    ctx.addIssue({
      code: 'custom',
      message: isDrainableError(error)
        ? `${error.message}; or unix:/path/of/the/socket`
        : 'expected a URL or unix:/path/of/the/socket',
    })
  }
})

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

/** Without an admin API receipts have to say that a set was taken, and load reports who is busy. */
function canDoWithoutAdmin({
  endpoints,
  loads,
}: {
  readonly endpoints: EndpointSink
  readonly loads?: LoadReportSource
}): boolean {
  return endpoints.receipts !== undefined && (loads ?? endpoints.loads) !== undefined
}

const schema = z
  .strictObject({
    endpoints: z.custom<EndpointSink>(
      isSink,
      'expected fileEndpoints(), restEndpoints(), callbackEndpoints(), observedEndpoints() or grpcEndpoints()',
    ),
    admin: z
      .union(
        [
          z.array(address).min(1, 'expected at least one address'),
          z.custom<() => Promise<readonly string[]>>((value) => typeof value === 'function'),
        ],
        {
          error: (issue) =>
            Array.isArray(issue.input)
              ? undefined
              : "expected a list of addresses such as ['http://127.0.0.1:9901'], or a function that returns one",
        },
      )
      .exactOptional(),
    loads: z
      .custom<LoadReportSource>(isSource, "expected loadReports() of 'drainable/envoy/grpc'")
      .exactOptional(),
    expect: z.union([z.number().int().min(1), z.array(z.string().min(1)).min(1)]).exactOptional(),
    onProxyGone: z
      .union(
        [
          z.literal('wait'),
          z.strictObject({ after: durationOption({ infinite: true, bareSeconds: 'refuse' }) }),
        ],
        "expected 'wait' or { after: '5m' }",
      )
      .default('wait'),
    onPanic: z.enum(['refuse', 'allow']).default('refuse'),
    panicThreshold: z.number().min(0).max(100).exactOptional(),
    mergeWindow: durationOption().exactOptional(),
    connectTimeout: durationOption().exactOptional(),
  })
  .refine((options) => options.admin !== undefined || canDoWithoutAdmin(options), {
    path: ['admin'],
    message:
      'expected the addresses of the admin APIs: without them work is not known; only grpcEndpoints(), and restEndpoints() with loads, can use load reports instead',
  })

/** The options as the provider uses them: checked, with defaults filled in, durations in milliseconds. */
export type Settings = Readonly<z.output<typeof schema>>

/** @throws `INVALID_OPTIONS` naming every wrong option */
export function readOptions(options: EnvoyOptions): Settings {
  return parseOptions(schema, options, 'envoy()')
}
