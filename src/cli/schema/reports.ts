/** The schemas of the reports in documents and events. */
import * as z from 'zod/mini'
import * as part from './parts.js'

const member = z.strictObject({
  ref: part.ref,
  outcome: part.outcome,
  phase: part.phase,
  wasAdmin: part.anyAdmin,
  held: z.boolean(),
  verifiedIdle: z.boolean(),
  sealed: z.boolean(),
  proof: z.exactOptional(part.proof),
  lost: z.array(
    z.strictObject({
      scope: z.string(),
      active: part.count,
      at: part.time,
      note: z.exactOptional(z.string()),
    }),
  ),
  terminated: part.count,
  terminatedAtMost: z.exactOptional(z.literal(true)),
  elapsed: part.ms,
  why: z.array(part.why),
  lastReading: z.exactOptional(part.reading),
  error: z.exactOptional(part.error),
})

/** How a drain, a watch or an undo went. */
export const drainReport = z.strictObject({
  outcome: part.outcome,
  members: z.array(member),
  elapsed: part.ms,
  error: z.exactOptional(part.error),
})

/** What `ready` found and left. */
export const readyReport = z.strictObject({
  members: z.array(
    z.strictObject({
      ref: part.ref,
      wasAdmin: part.anyAdmin,
      health: part.health,
      hints: z.exactOptional(z.array(z.string())),
    }),
  ),
})

/** How a roll went. */
export const rollReport = z.strictObject({
  outcome: z.enum(['done', 'stopped', 'aborted']),
  servers: z.array(
    z.strictObject({
      address: z.exactOptional(z.string()),
      refs: z.array(part.ref),
      outcome: z.enum(['done', 'failed', 'busy', 'untouched']),
      attempts: part.count,
      times: z.strictObject({
        drain: z.exactOptional(part.ms),
        act: z.exactOptional(part.ms),
        healthy: z.exactOptional(part.ms),
      }),
      error: z.exactOptional(part.error),
      drained: z.exactOptional(drainReport),
    }),
  ),
  done: z.array(member),
  failed: z.array(member),
  untouched: z.array(part.ref),
  leftDrained: z.array(part.ref),
  leftAsFound: z.array(part.ref),
  elapsed: part.ms,
  error: z.exactOptional(part.error),
})

const change = z.looseObject({
  ref: part.ref,
  kind: z.enum(['hold', 'restore', 'terminate', 'remove', 'add']),
})

/** What a drain or a roll would do. */
export const plan = z.strictObject({
  kind: z.enum(['drain', 'roll']),
  changes: z.array(change),
  steps: z.array(
    z.strictObject({ change, reason: z.string(), keepReady: z.exactOptional(part.count) }),
  ),
  held: z.array(
    z.strictObject({
      ref: part.ref,
      reason: z.string(),
      asWished: z.exactOptional(z.literal(true)),
    }),
  ),
  notes: z.exactOptional(z.array(z.string())),
  refused: z.array(part.error),
  expected: z.strictObject({ least: part.ms, most: z.nullable(part.ms) }),
  text: z.string(),
})

/** A drain or a roll that no process continues. */
export const orphan = z.strictObject({
  ticket: z.string(),
  kind: z.enum(['drain', 'roll']),
  startedAt: part.time,
  deadline: z.nullable(part.time),
  owner: z.strictObject({ state: z.enum(['gone', 'unknown']), text: z.string() }),
  members: z.array(
    z.strictObject({
      ref: part.ref,
      phase: part.phase,
      since: part.time,
      deadline: z.nullable(part.time),
      active: z.nullable(part.count),
      queued: z.nullable(part.count),
      why: z.array(part.why),
      own: z.nullable(part.anyAdmin),
      owes: z.boolean(),
    }),
  ),
})

/** A drain or a roll that is listed where other balancers are named. */
export const elsewhere = z.strictObject({
  ticket: z.string(),
  balancers: z.string().check(z.describe('to be named in place of this one')),
  held: z.array(part.ref).check(z.describe('members of this balancer that it may hold')),
})
