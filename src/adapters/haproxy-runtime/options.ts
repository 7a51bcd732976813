import { z } from 'zod'
import { type Duration, parseDuration } from '../../provider/duration.js'
import { DrainableError } from '../../provider/error.js'
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

const addressSchema = z.union(
  [
    z
      .string()
      .min(1)
      .regex(/^[^\0\n]*$/),
    z.strictObject({ host: z.string().min(1), port: z.int().min(1).max(65_535) }),
  ],
  "expected the path of a unix socket, or { host, port } of a 'stats socket ipv4@...'",
)

/** Durations are parsed apart: their messages say how to write one. */
const duration = z.custom<Duration>(
  (value) => typeof value === 'number' || typeof value === 'string',
  "expected milliseconds or a text with its unit, such as '2s'",
)

const schema = z.strictObject({
  socket: addressSchema,
  master: addressSchema.exactOptional(),
  oldWorkers: z
    .union(
      [z.literal('wait'), z.literal('accept'), z.strictObject({ within: duration })],
      "expected 'wait', 'accept' or { within: '30s' }",
    )
    .exactOptional(),
  maintCuts: z.boolean().exactOptional(),
  keepFollowers: z.int().min(0).exactOptional(),
  connectTimeout: duration.exactOptional(),
  replyTimeout: duration.exactOptional(),
  maxConnections: z.int().min(1).max(100).exactOptional(),
})

/** The options with their defaults, durations in milliseconds. */
export interface Settings {
  readonly socket: SocketAddress
  readonly master: SocketAddress | undefined
  readonly oldWorkers: 'wait' | 'accept' | { readonly within: number }
  readonly maintCuts: boolean
  readonly keepFollowers: number
  readonly connectTimeout: number
  readonly replyTimeout: number
  readonly maxConnections: number
}

/** @throws `INVALID_OPTIONS` naming the field */
export function toSettings(options: unknown): Settings {
  const subject = 'haproxyRuntime()'
  const given = parseOptions(schema, options, subject)
  const ms = (field: string, value: Duration | undefined, fallback: number): number => {
    if (value === undefined) return fallback
    try {
      return parseDuration(value, field, { min: 10 })
    } catch (cause) {
      const words = cause instanceof Error ? cause.message : String(cause)
      throw new DrainableError('INVALID_OPTIONS', `${subject}: ${words}`, { cause })
    }
  }
  const old = given.oldWorkers ?? 'wait'
  return {
    socket: given.socket,
    master: given.master,
    oldWorkers: typeof old === 'string' ? old : { within: ms('oldWorkers.within', old.within, 0) },
    maintCuts: given.maintCuts ?? false,
    keepFollowers: given.keepFollowers ?? 1,
    connectTimeout: ms('connectTimeout', given.connectTimeout, 2_000),
    replyTimeout: ms('replyTimeout', given.replyTimeout, 5_000),
    maxConnections: given.maxConnections ?? 4,
  }
}
