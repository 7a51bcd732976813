import * as z from 'zod/mini'
import { DrainableError } from '../../provider/error.js'
import { missingMethods, once, parseOptions, readGiven } from '../../provider/options.js'
import { quote } from '../../provider/quote.js'
import type { Lease } from './lease.js'

/** The part of a `redis` client (4 and newer) that a lease uses. */
export interface RedisLike {
  /** Runs a script on the server atomically. */
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>
}

/*
 * One key stores the holder and expires by itself; a second one stores the fencing number and never expires. The
 * number is never below the server's time, so that a server that lost its data goes on above its earlier numbers.
 * Redis runs a script atomically.
 */
const ACQUIRE = `
local holder = redis.call('GET', KEYS[1])
if holder == ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return {1, redis.call('GET', KEYS[2])}
end
if holder then return {0, holder} end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local last = tonumber(redis.call('GET', KEYS[2]) or '0')
local fence = string.format('%.0f', math.max(now, last + 1))
redis.call('SET', KEYS[2], fence)
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {1, fence}`

const RENEW = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] or redis.call('GET', KEYS[2]) ~= ARGV[3] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])`

const RELEASE = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])`

/**
 * Makes a lease in Redis or Valkey, over your own client. It uses two keys in one cluster slot: `{<key>}` with the
 * holder, and `{<key>}:fence` with the fencing number. A `key` that contains braces is used unchanged.
 *
 * Redis replicates after it has answered: a failover at that moment can give the lease to a second holder while the
 * first one believes to have it until its renew deadline. Two controllers that want the same state can't hurt each
 * other; the tickets keep the fencing number of the later one.
 *
 * @param client - connected; a client that queues commands while it reconnects is fine
 * @param options - `key`: what all contenders of one lease name alike
 * @throws `INVALID_OPTIONS`
 *
 * @example
 * ```ts
 * import { redisLease, type Lease, type RedisLike } from 'drainable'
 *
 * // const client = await createClient({ url: 'redis://127.0.0.1:6379' }).connect()
 * export function leaseOf(client: RedisLike): Lease {
 *   return redisLease(client, { key: 'drainable/edge' })
 * }
 * ```
 */
export function redisLease(client: RedisLike, options: { readonly key: string }): Lease {
  if (readGiven('redisLease(): client', () => missingMethods(client, ['eval'])).length > 0) {
    const words = 'redisLease(): client: expected a client of redis 4 or newer, with eval()'
    throw new DrainableError('INVALID_OPTIONS', words)
  }
  const key = keyOf(options, 'redisLease()')
  const tag = /\{[^}]+\}/.test(key) ? key : `{${key}}`
  const run = (script: string, ...args: readonly (string | number)[]): Promise<unknown> =>
    client.eval(script, { keys: [tag, `${tag}:fence`], arguments: args.map(String) })
  return {
    name: `redis '${key}'`,
    acquire: async (holder, ttl) => {
      const [granted, told] = pairOf(await run(ACQUIRE, holder, Math.ceil(ttl)), key)
      if (Number(granted) === 1) return { granted: true, fence: Number(told) }
      return { granted: false, holder: textOf(told) }
    },
    renew: async ({ holder, fence }, ttl) =>
      Number(await run(RENEW, holder, Math.ceil(ttl), fence)) === 1,
    release: async ({ holder }) => {
      await run(RELEASE, holder)
    },
  }
}

/** A client can be configured to return buffers. */
function textOf(value: unknown): string | null {
  if (typeof value === 'string') return value
  return value instanceof Uint8Array ? Buffer.from(value).toString('utf8') : null
}

function pairOf(reply: unknown, key: string): readonly unknown[] {
  if (Array.isArray(reply) && reply.length === 2) return reply as readonly unknown[]
  throw new DrainableError(
    'MALFORMED_REPLY',
    `redis '${quote(key)}': acquire: expected a list of two`,
  )
}

const KEY =
  "expected 1 to 200 letters, digits or _ . / : = { } -, such as { key: 'drainable/edge' }"

const keySchema = /* @__PURE__ */ once(() =>
  z.strictObject({ key: z.string(KEY).check(z.regex(/^[\w./:={}-]{1,200}$/, KEY)) }),
)

/** Checks the `key` option of a lease: a caller in JavaScript can leave all options out. */
export function keyOf(options: unknown, subject: string): string {
  return parseOptions(keySchema(), options ?? {}, subject).key
}
