import { z } from 'zod'
import type { Duration } from '../../provider/duration.js'
import { parseDuration } from '../../provider/duration.js'
import { isDrainableError } from '../../provider/error.js'
import { parseAdminAddress } from './session/admin-client.js'
import type { EndpointSink } from './sources/sink.js'

/** The addresses of the admin APIs, or a function that returns them. */
export type AdminAddresses = readonly string[] | (() => Promise<readonly string[]>)

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

const duration = z.custom<Duration>((value) => {
  try {
    parseDuration(value, 'duration')
    return true
  } catch {
    return false
  }
}, "expected milliseconds or a text with its unit, such as 30000 or '30s'")

const isSink = (value: unknown): value is EndpointSink =>
  typeof value === 'object' &&
  value !== null &&
  'kind' in value &&
  'publish' in value &&
  typeof value.publish === 'function' &&
  'load' in value &&
  typeof value.load === 'function'

export const envoySchema = z
  .strictObject({
    endpoints: z.custom<EndpointSink>(
      isSink,
      'expected fileEndpoints(), restEndpoints(), callbackEndpoints() or grpcEndpoints()',
    ),
    admin: z
      .union([
        z.array(address).min(1, 'expected at least one address'),
        z.custom<() => Promise<readonly string[]>>(
          (value) => typeof value === 'function',
          'expected a list of addresses or a function that returns one',
        ),
      ])
      .exactOptional(),
    expect: z.union([z.number().int().min(1), z.array(z.string().min(1)).min(1)]).exactOptional(),
    onProxyGone: z.union([z.literal('wait'), z.strictObject({ after: duration })]).exactOptional(),
    onPanic: z.enum(['refuse', 'allow']).exactOptional(),
    mergeWindow: duration.exactOptional(),
    connectTimeout: duration.exactOptional(),
  })
  .refine((options) => options.admin !== undefined || options.endpoints.loads !== undefined, {
    path: ['admin'],
    message:
      'expected the addresses of the admin APIs: without them nobody knows who is busy; only grpcEndpoints() can do with load reports',
  })
