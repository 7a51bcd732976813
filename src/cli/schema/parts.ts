/** The schemas of what documents and events are made of; the types of the library say what each field means. */
import * as z from 'zod/mini'
import { whole } from '../../provider/option-schemas.js'
import { outcomeSchema } from '../../core/tickets/schema.js'

/** ISO 8601. */
export const time = z.iso.datetime()
export const count = whole(0)
export const ms = z.number().check(z.minimum(0), z.describe('milliseconds'))
export const admin = z.enum(['ready', 'drain', 'maint'])
export const anyAdmin = z.enum(['ready', 'drain', 'maint', 'unknown'])
export const health = z.enum(['up', 'down', 'unchecked', 'unknown'])
export const phase = z.enum(['active', 'draining', 'idle', 'removed'])

export const ref = z.strictObject({
  pool: z.string(),
  member: z.string(),
  balancer: z.exactOptional(z.string().check(z.describe('its name, of several balancers'))),
})

export const outcome = outcomeSchema()

/** An error inside a report or an event. */
export const error = z.strictObject({
  name: z.literal('DrainableError'),
  code: z.string(),
  message: z.string(),
  retryable: z.boolean(),
  ref: z.exactOptional(ref),
  provider: z.exactOptional(z.string()),
})

export const why = z.strictObject({
  code: z.string(),
  ref,
  scope: z.exactOptional(z.string()),
  count: z.exactOptional(count),
  oldest: z.exactOptional(ms),
  text: z.string(),
  hint: z.exactOptional(z.string()),
})

export const scope = z.strictObject({
  scope: z.string(),
  incarnation: z.string(),
  state: z.enum(['read', 'unread', 'ended']),
  sampledAt: z.number(),
  active: count,
  oldest: z.exactOptional(ms),
  queued: count,
  mayHide: z.exactOptional(z.boolean()),
  pooled: z.exactOptional(z.number()),
  arrivals: z.exactOptional(count),
  countersFrom: z.exactOptional(z.string()),
  admin: z.exactOptional(anyAdmin),
  inForce: z.exactOptional(z.boolean()),
  open: z.exactOptional(z.boolean()),
  lived: z.exactOptional(z.number()),
  released: z.exactOptional(z.boolean()),
  note: z.exactOptional(z.string()),
  old: z.exactOptional(z.boolean()),
})

export const proof = z.strictObject({
  arrivals: z.enum(['unchanged', 'unknown']),
  quietSince: time,
  samples: z.array(z.strictObject({ at: time, scopes: z.array(scope) })),
  text: z.string(),
})

const hints = z.exactOptional(z.array(z.string()))

export const reading = z.discriminatedUnion('present', [
  z.strictObject({
    ref,
    present: z.literal(true),
    identity: z.string(),
    address: z.exactOptional(z.string()),
    port: z.exactOptional(z.number()),
    weight: z.exactOptional(z.number()),
    own: anyAdmin,
    inherited: z.exactOptional(admin),
    stored: z.exactOptional(z.enum(['drain', 'maint'])),
    serves: z.boolean(),
    health,
    scopes: z.array(scope),
    maint: z.exactOptional(z.enum(['gentle', 'cuts', 'unknown', 'none'])),
    native: z.exactOptional(
      z.json().check(z.describe('the data of the product that an undo needs')),
    ),
    sealed: z.exactOptional(z.boolean()),
    unverified: z.exactOptional(z.string()),
    setBy: z.exactOptional(z.string()),
    changeTime: z.exactOptional(z.number()),
    hints,
    advice: z.exactOptional(z.strictObject({ text: z.string(), hint: z.string() })),
  }),
  z.strictObject({ ref, present: z.literal(false), scopes: z.array(scope), hints }),
])
