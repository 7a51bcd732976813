/** The schema of an event: a line of `--jsonl`. */
import * as z from 'zod/mini'
import * as part from './parts.js'
import { drainReport, rollReport } from './reports.js'

const about = { at: part.time, ref: part.ref }
const server = { ...about, refs: z.array(part.ref), address: z.exactOptional(z.string()) }

export const event = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('phase'), ...about, from: part.phase, to: part.phase }),
  z.strictObject({
    type: z.literal('load'),
    ...about,
    active: part.count,
    oldest: z.nullable(part.ms),
    queued: part.count,
    complete: z.boolean(),
    why: z.array(part.why),
    phase: part.phase,
    own: z.nullable(part.anyAdmin),
    health: z.nullable(part.health),
    scopes: z.array(part.scope),
    deadline: z.nullable(part.time),
  }),
  z.strictObject({ type: z.literal('idle'), ...about, proof: part.proof }),
  z.strictObject({ type: z.literal('in-force'), ...about }),
  z.strictObject({ type: z.literal('idle-lost'), ...about }),
  z.strictObject({ type: z.literal('removed'), ...about }),
  z.strictObject({
    type: z.literal('overruled'),
    ...about,
    expected: part.admin,
    found: part.anyAdmin,
    reset: z.boolean(),
  }),
  z.strictObject({ type: z.literal('terminated'), ...about, count: part.count }),
  z.strictObject({ type: z.literal('fault'), ...about, error: part.error }),
  z.strictObject({
    type: z.literal('end'),
    at: part.time,
    outcome: part.outcome,
    report: drainReport,
  }),
  z.strictObject({ type: z.literal('batch'), at: part.time, refs: z.array(part.ref) }),
  z.strictObject({ type: z.literal('act'), ...server, attempt: part.count }),
  z.strictObject({ type: z.literal('ready'), ...server }),
  z.strictObject({ type: z.literal('healthy'), ...server }),
  z.strictObject({ type: z.literal('postponed'), ...server }),
  z.strictObject({ type: z.literal('failed'), ...server, error: part.error }),
  z.strictObject({ type: z.literal('roll-end'), at: part.time, report: rollReport }),
])
