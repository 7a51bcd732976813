import * as z from 'zod'
import type { Duration } from '../../provider/duration.js'
import { durationOption } from '../../provider/duration-option.js'
import { isDrainableError } from '../../provider/error.js'
import { parseOptions } from '../../provider/options.js'
import { parseAdminAddress } from './session/admin.js'

/** One admin address, several, or a function that returns them. */
export type AdminAddresses = string | readonly string[] | (() => Promise<readonly string[]>)

/**
 * When what is in front of an Envoy is taken to know that it gets no more work.
 *
 * - `{ checks }`: that many failed health checks were answered since. Give the number after which the balancer in front
 *   takes it out (its unhealthy threshold), times the number of those that check on their own.
 * - `{ after }`: that long after the health check was failed. For what can't be counted: a proxy in front that is told
 *   by another program, such as a Kubernetes Service whose pod is terminating.
 */
export type Noticed = { readonly checks: number } | { readonly after: Duration }

/** Options of {@link envoyListener}. */
export interface EnvoyListenerOptions {
  /**
   * The admin API of the Envoy, `http://127.0.0.1:9901` or `unix:/run/envoy/admin.sock`; several make a pool of several
   * members. A function is asked at every look; what it no longer names has ended by your word.
   */
  readonly admin: AdminAddresses
  /** Name of the pool they make. @default 'envoy' */
  readonly pool?: string | undefined
  /** When what is in front knows. Until then it is not idle. @default \{ checks: 1 \} */
  readonly noticed?: Noticed | undefined
  /**
   * What is asked from the outside whether this Envoy is healthy: the health check filter of a listener, or `/ready` of
   * the admin API. With `filter`, a proxy that has no such filter is refused before anything is changed: nothing would
   * see its health check fail.
   *
   * @default 'filter'
   */
  readonly probe?: 'filter' | 'ready' | undefined
  /**
   * What is no work of clients: the `stat_prefix` of HTTP connection managers that serve probes or metrics, and the
   * statistics names of such listeners that are not HTTP, as `127.0.0.1_9000`.
   *
   * @default none
   */
  readonly ignore?: readonly string[] | undefined
}

const address = z.string().superRefine((value, ctx) => {
  try {
    parseAdminAddress(value)
  } catch (error) {
    const said = isDrainableError(error) ? error.message.replace(/^admin: /, '') : 'expected a URL'
    ctx.addIssue({ code: 'custom', message: `${said}; or unix:/path/of/the/socket` })
  }
})

const schema = z
  .strictObject({
    admin: z.union(
      [
        address,
        z.array(address).min(1, 'expected at least one address'),
        z.custom<() => Promise<readonly string[]>>((value) => typeof value === 'function'),
      ],
      {
        error: (issue) =>
          typeof issue.input === 'string' || Array.isArray(issue.input)
            ? undefined
            : "expected an address such as 'http://127.0.0.1:9901', a list of them, or a function that returns one",
      },
    ),
    pool: z.string().min(1).max(200).default('envoy'),
    noticed: z
      .union(
        [
          z.strictObject({ checks: z.int().min(1).max(10_000) }),
          z.strictObject({ after: durationOption({ bareSeconds: 'refuse' }) }),
        ],
        "expected { checks: 3 } or { after: '10s' }",
      )
      .default({ checks: 1 }),
    probe: z.enum(['filter', 'ready']).default('filter'),
    ignore: z.array(z.string().min(1)).default([]),
  })
  .transform(({ admin, ...rest }) => ({
    ...rest,
    admin: typeof admin === 'string' ? [admin] : admin,
  }))

/** The options as the provider uses them: checked, with defaults filled in, durations in milliseconds. */
export type Settings = Readonly<z.output<typeof schema>>

/** @throws `INVALID_OPTIONS` naming every wrong option */
export function readOptions(options: EnvoyListenerOptions): Settings {
  return parseOptions(schema, options, 'envoyListener()')
}
