import * as z from 'zod/mini'
import type { Duration } from '../../provider/duration.js'
import { durationOption, nonEmpty, whole } from '../../provider/option-schemas.js'
import { parseOptions } from '../../provider/options.js'
import { adminAddress } from '../../kit/envoy/admin-list.js'

/** The admin addresses: one, several, or a function that returns them. */
export type AdminAddresses = string | readonly string[] | (() => Promise<readonly string[]>)

/**
 * When the load balancer in front of an Envoy counts as having noticed that the Envoy gets no more work.
 *
 * - `{ checks }`: after this many failed health checks. Give the number after which the balancer in front takes the
 *   Envoy out (its unhealthy threshold), times the number of balancers that check independently.
 * - `{ after }`: this long after the provider failed the health check. For a balancer whose checks can't be counted:
 *   one that another program informs, such as a Kubernetes Service with a terminating pod.
 */
export type Noticed = { readonly checks: number } | { readonly after: Duration }

/** Options of {@link envoyListener}. */
export interface EnvoyListenerOptions {
  /**
   * The admin API of the Envoy, `http://127.0.0.1:9901` or `unix:/run/envoy/admin.sock`; several addresses make a
   * pool of several members. A function is called for every look; an Envoy that it no longer returns counts as ended.
   */
  readonly admin: AdminAddresses
  /** The name of their pool. @default 'envoy' */
  readonly pool?: string | undefined
  /** When the load balancer in front has noticed. Until then the Envoy is not idle. @default \{ checks: 1 \} */
  readonly noticed?: Noticed | undefined
  /**
   * How long the Envoy still passes its health check after a drain was asked for: for a balancer in front that
   * deregisters it meanwhile, and would cut its connections if it saw it fail. A drain needs at least that long.
   * @default 0
   */
  readonly failAfter?: Duration | undefined
  /**
   * What the health checks from outside probe: the health check filter of a listener, or `/ready` of the admin API.
   * With `filter`, the drain of a proxy without such a filter is refused before any change, because no check would
   * fail.
   *
   * @default 'filter'
   */
  readonly probe?: 'filter' | 'ready' | undefined
  /**
   * What does not count as client work: the `stat_prefix` of HTTP connection managers that serve probes or metrics,
   * and the statistics names of such listeners that are not HTTP, such as `127.0.0.1_9000`.
   *
   * @default none
   */
  readonly ignore?: readonly string[] | undefined
}

const schema = z.pipe(
  z.strictObject({
    admin: z.union(
      [
        adminAddress,
        z.array(adminAddress).check(z.minLength(1, 'expected at least one address')),
        z.custom<() => Promise<readonly string[]>>((value) => typeof value === 'function'),
      ],
      {
        error: (issue) =>
          typeof issue.input === 'string' || Array.isArray(issue.input)
            ? undefined
            : "expected an address such as 'http://127.0.0.1:9901', a list of them, or a function that returns one",
      },
    ),
    pool: z._default(nonEmpty().check(z.maxLength(200)), 'envoy'),
    noticed: z._default(
      z.union(
        [z.strictObject({ checks: whole(1, 10_000) }), z.strictObject({ after: durationOption() })],
        "expected { checks: 3 } or { after: '10s' }",
      ),
      { checks: 1 },
    ),
    failAfter: z._default(durationOption(), 0),
    probe: z._default(z.enum(['filter', 'ready']), 'filter'),
    ignore: z._default(z.array(nonEmpty()), []),
  }),
  z.transform(({ admin, ...rest }) => ({
    ...rest,
    admin: typeof admin === 'string' ? [admin] : admin,
  })),
)

/** The options as the provider uses them: checked, with defaults filled in, durations in milliseconds. */
export type Settings = Readonly<z.output<typeof schema>>

/** @throws `INVALID_OPTIONS` naming every wrong option */
export function readOptions(options: EnvoyListenerOptions): Settings {
  return parseOptions(schema, options, 'envoyListener()')
}
