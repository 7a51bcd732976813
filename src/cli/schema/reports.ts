/** The schemas of the reports in documents and events. */
import * as z from 'zod'
import * as part from './parts.js'

const member = z.strictObject({
  ref: part.ref,
  outcome: part.outcome,
  phase: part.phase,
  wasAdmin: part.anyAdmin,
  held: z.boolean(),
  verifiedIdle: z.boolean(),
  sealed: z.boolean(),
  proof: part.proof.exactOptional(),
  lost: z.array(
    z.strictObject({
      scope: z.string(),
      active: part.count,
      at: part.time,
      note: z.string().exactOptional(),
    }),
  ),
  terminated: part.count,
  terminatedAtMost: z.literal(true).exactOptional(),
  elapsed: part.ms,
  why: z.array(part.why),
  lastReading: part.reading.exactOptional(),
  error: part.error.exactOptional(),
})

/** How a drain, a watch or an undo went. */
export const drainReport = z.strictObject({
  outcome: part.outcome,
  members: z.array(member),
  elapsed: part.ms,
  error: part.error.exactOptional(),
})

/** What `ready` found and left. */
export const readyReport = z.strictObject({
  members: z.array(
    z.strictObject({
      ref: part.ref,
      wasAdmin: part.anyAdmin,
      health: part.health,
      hints: z.array(z.string()).exactOptional(),
    }),
  ),
})

/** How a roll went. */
export const rollReport = z.strictObject({
  outcome: z.enum(['done', 'stopped', 'aborted']),
  servers: z.array(
    z.strictObject({
      address: z.string().exactOptional(),
      refs: z.array(part.ref),
      outcome: z.enum(['done', 'failed', 'busy', 'untouched']),
      attempts: part.count,
      times: z.strictObject({
        drain: part.ms.exactOptional(),
        act: part.ms.exactOptional(),
        healthy: part.ms.exactOptional(),
      }),
      error: part.error.exactOptional(),
      drained: drainReport.exactOptional(),
    }),
  ),
  done: z.array(member),
  failed: z.array(member),
  untouched: z.array(part.ref),
  leftDrained: z.array(part.ref),
  leftAsFound: z.array(part.ref),
  elapsed: part.ms,
  error: part.error.exactOptional(),
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
    z.strictObject({ change, reason: z.string(), keepReady: part.count.exactOptional() }),
  ),
  held: z.array(
    z.strictObject({
      ref: part.ref,
      reason: z.string(),
      asWished: z.literal(true).exactOptional(),
    }),
  ),
  notes: z.array(z.string()).exactOptional(),
  refused: z.array(part.error),
  expected: z.strictObject({ least: part.ms, most: part.ms.nullable() }),
  text: z.string(),
})

/** A drain or a roll that no process continues. */
export const orphan = z.strictObject({
  ticket: z.string(),
  kind: z.enum(['drain', 'roll']),
  startedAt: part.time,
  deadline: part.time.nullable(),
  owner: z.strictObject({ state: z.enum(['gone', 'unknown']), text: z.string() }),
  members: z.array(
    z.strictObject({
      ref: part.ref,
      phase: part.phase,
      since: part.time,
      deadline: part.time.nullable(),
      active: part.count.nullable(),
      queued: part.count.nullable(),
      why: z.array(part.why),
      own: part.anyAdmin.nullable(),
      owes: z.boolean(),
    }),
  ),
})
