/** The schema of the document of a call: what `--json` prints, and the last line of `--jsonl`. */
import * as z from 'zod/mini'
import { whole } from '../../provider/option-schemas.js'
import { event } from './event.js'
import { count, reading } from './parts.js'
import { drainReport, elsewhere, orphan, plan, readyReport, rollReport } from './reports.js'

const common = {
  exitCode: whole(0, 255).check(z.describe('the exit status, as the table in the docs has it')),
  balancer: z.exactOptional(z.strictObject({ name: z.string(), instance: z.string() })),
  error: z.exactOptional(
    z.strictObject({
      code: z
        .string()
        .check(z.describe('an error code of the library, the name of a signal, or ERROR')),
      message: z.string(),
    }),
  ),
}

const ticket = z.exactOptional(
  z.string().check(z.describe('present while resume and restore can use it')),
)

const drained = {
  ...common,
  changed: z.boolean().check(z.describe('whether anything was changed on the balancer')),
  report: z.exactOptional(drainReport),
  command: z.exactOptional(
    z
      .strictObject({ status: z.nullable(count), signal: z.nullable(z.string()) })
      .check(z.describe('how COMMAND ended; status is null if a signal ended it')),
  ),
  ticket,
}

/** The fields of the document of each verb. */
const forms = {
  drain: z.strictObject({
    verb: z.literal('drain'),
    ...drained,
    ready: z.exactOptional(readyReport),
    leftAsFound: z.exactOptional(z.array(z.string())),
  }),
  resumedDrain: z.strictObject({ verb: z.literal('resume'), ...drained }),
  roll: z.strictObject({
    verb: z.enum(['roll', 'resume']),
    ...common,
    roll: z.exactOptional(rollReport),
    ticket,
  }),
  ready: z.strictObject({
    verb: z.literal('ready'),
    ...common,
    report: z.exactOptional(readyReport),
  }),
  status: z.strictObject({
    verb: z.literal('status'),
    ...common,
    members: z.exactOptional(z.array(reading)),
  }),
  watch: z.strictObject({
    verb: z.literal('watch'),
    ...common,
    report: z.exactOptional(drainReport),
  }),
  plan: z.strictObject({ verb: z.literal('plan'), ...common, plan: z.exactOptional(plan) }),
  restore: z.strictObject({
    verb: z.literal('restore'),
    ...common,
    report: z.exactOptional(drainReport),
    ticket,
  }),
  orphans: z.strictObject({
    verb: z.literal('orphans'),
    ...common,
    orphans: z.exactOptional(z.array(orphan)),
    elsewhere: z.exactOptional(z.array(elsewhere)),
  }),
}

const lastLine = { type: z.literal('result') }

/** A document as the last line of all. */
type AsLastLine<Form> =
  Form extends z.ZodMiniObject<infer Shape, infer Mode>
    ? z.ZodMiniObject<Shape & typeof lastLine, Mode>
    : never

function asLastLine<Form extends z.ZodMiniObject>(form: Form): AsLastLine<Form> {
  return z.extend(form, lastLine) as unknown as AsLastLine<Form>
}

/** A document of `--json`. */
export const resultSchema = z
  .union(Object.values(forms))
  .check(z.describe('the document of one call'))

/** A line of `--jsonl`: an event, or as the last one the document with the type `result`. */
export const lineSchema = z
  .union([event, ...Object.values(forms).map(asLastLine)])
  .check(z.describe('a line of --jsonl'))
