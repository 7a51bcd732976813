/** The schema of the document of a call: what `--json` prints, and the last line of `--jsonl`. */
import * as z from 'zod'
import { event } from './event.js'
import { count, reading } from './parts.js'
import { drainReport, orphan, plan, readyReport, rollReport } from './reports.js'

const common = {
  exitCode: z.int().min(0).max(255).describe('the exit status, as the table in the docs has it'),
  balancer: z.strictObject({ name: z.string(), instance: z.string() }).exactOptional(),
  error: z
    .strictObject({
      code: z.string().describe('an error code of the library, the name of a signal, or ERROR'),
      message: z.string(),
    })
    .exactOptional(),
}

const ticket = z.string().describe('present while resume and restore can use it').exactOptional()

const drained = {
  ...common,
  changed: z.boolean().describe('whether anything was changed on the balancer'),
  report: drainReport.exactOptional(),
  command: z
    .strictObject({ status: count.nullable(), signal: z.string().nullable() })
    .describe('how COMMAND ended; status is null if a signal ended it')
    .exactOptional(),
  ticket,
}

/** The fields of the document of each verb. */
const forms = {
  drain: z.strictObject({
    verb: z.literal('drain'),
    ...drained,
    ready: readyReport.exactOptional(),
    leftAsFound: z.array(z.string()).exactOptional(),
  }),
  resumedDrain: z.strictObject({ verb: z.literal('resume'), ...drained }),
  roll: z.strictObject({
    verb: z.enum(['roll', 'resume']),
    ...common,
    roll: rollReport.exactOptional(),
    ticket,
  }),
  ready: z.strictObject({
    verb: z.literal('ready'),
    ...common,
    report: readyReport.exactOptional(),
  }),
  status: z.strictObject({
    verb: z.literal('status'),
    ...common,
    members: z.array(reading).exactOptional(),
  }),
  watch: z.strictObject({
    verb: z.literal('watch'),
    ...common,
    report: drainReport.exactOptional(),
  }),
  plan: z.strictObject({ verb: z.literal('plan'), ...common, plan: plan.exactOptional() }),
  restore: z.strictObject({
    verb: z.literal('restore'),
    ...common,
    report: drainReport.exactOptional(),
    ticket,
  }),
  orphans: z.strictObject({
    verb: z.literal('orphans'),
    ...common,
    orphans: z.array(orphan).exactOptional(),
  }),
}

const lastLine = { type: z.literal('result') }

/** A document of `--json`. */
export const resultSchema = z.union(Object.values(forms)).describe('the document of one call')

/** A line of `--jsonl`: an event, or as the last one the document with the type `result`. */
export const lineSchema = z
  .union([event, ...Object.values(forms).map((form) => form.extend(lastLine))])
  .describe('a line of --jsonl')
