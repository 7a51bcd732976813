/** The schemas of what documents and events are made of; the types of the library say what each field means. */
import * as z from 'zod'
import { outcomeSchema } from '../../core/tickets/schema.js'

/** ISO 8601. */
export const time = z.iso.datetime()
export const count = z.int().min(0)
export const ms = z.number().min(0).describe('milliseconds')
export const admin = z.enum(['ready', 'drain', 'maint'])
export const anyAdmin = z.enum(['ready', 'drain', 'maint', 'unknown'])
export const health = z.enum(['up', 'down', 'unchecked', 'unknown'])
export const phase = z.enum(['active', 'draining', 'idle', 'removed'])

export const ref = z.strictObject({
  pool: z.string(),
  member: z.string(),
  balancer: z.string().describe('its name, of several balancers').exactOptional(),
})

export const outcome = outcomeSchema()

/** An error inside a report or an event. */
export const error = z.strictObject({
  name: z.literal('DrainableError'),
  code: z.string(),
  message: z.string(),
  retryable: z.boolean(),
  ref: ref.exactOptional(),
  provider: z.string().exactOptional(),
})

export const why = z.strictObject({
  code: z.string(),
  ref,
  scope: z.string().exactOptional(),
  count: count.exactOptional(),
  oldest: ms.exactOptional(),
  text: z.string(),
  hint: z.string().exactOptional(),
})

export const scope = z.strictObject({
  scope: z.string(),
  incarnation: z.string(),
  state: z.enum(['read', 'unread', 'ended']),
  sampledAt: z.number(),
  active: count,
  oldest: ms.exactOptional(),
  queued: count,
  mayHide: z.boolean().exactOptional(),
  pooled: z.number().exactOptional(),
  arrivals: count.exactOptional(),
  countersFrom: z.string().exactOptional(),
  admin: anyAdmin.exactOptional(),
  inForce: z.boolean().exactOptional(),
  open: z.boolean().exactOptional(),
  lived: z.number().exactOptional(),
  released: z.boolean().exactOptional(),
  note: z.string().exactOptional(),
  old: z.boolean().exactOptional(),
})

export const proof = z.strictObject({
  arrivals: z.enum(['unchanged', 'unknown']),
  quietSince: time,
  samples: z.array(z.strictObject({ at: time, scopes: z.array(scope) })),
  text: z.string(),
})

const hints = z.array(z.string()).exactOptional()

export const reading = z.discriminatedUnion('present', [
  z.strictObject({
    ref,
    present: z.literal(true),
    identity: z.string(),
    address: z.string().exactOptional(),
    port: z.number().exactOptional(),
    weight: z.number().exactOptional(),
    own: anyAdmin,
    inherited: admin.exactOptional(),
    stored: z.enum(['drain', 'maint']).exactOptional(),
    serves: z.boolean(),
    health,
    scopes: z.array(scope),
    maint: z.enum(['gentle', 'cuts', 'unknown', 'none']).exactOptional(),
    native: z.json().describe('the data of the product that an undo needs').exactOptional(),
    sealed: z.boolean().exactOptional(),
    unverified: z.string().exactOptional(),
    setBy: z.string().exactOptional(),
    changeTime: z.number().exactOptional(),
    hints,
  }),
  z.strictObject({ ref, present: z.literal(false), scopes: z.array(scope), hints }),
])
