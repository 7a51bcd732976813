import { describeIssue, type Schema, type SchemaIssue } from './describe-issue.js'
import { DrainableError } from './error.js'

export type { Schema, SchemaIssue } from './describe-issue.js'

/**
 * Checks what a caller gave against a schema and returns a frozen copy.
 *
 * @param schema - a strict zod schema: unknown keys are errors, a typo in `timeout` must not mean "for ever"
 * @param value - what the caller gave; never changed. An option that is `undefined` is absent
 * @param subject - whose options, for the message: `haproxyRuntime()`, `drain()`
 * @throws `INVALID_OPTIONS` naming every wrong field, what was expected and what was found; never the value of a secret
 */
export function parseOptions<T>(schema: Schema<T>, value: unknown, subject: string): Readonly<T> {
  const result = schema.safeParse(withoutUndefined(value))
  // A misspelt name is an error even if its value is undefined.
  const unknown = hasUndefined(value) ? unknownKeys(schema, value) : []
  if (result.success && unknown.length === 0) return Object.freeze(result.data)
  const issues = [...(result.error?.issues ?? []), ...unknown]
  throw new DrainableError(
    'INVALID_OPTIONS',
    `${subject}: ${[...new Set(issues.map((issue) => describeIssue(issue, schema)))].join('; ')}`,
  )
}

/** The methods that a caller's value lacks: all of them if it is not an object. */
export function missingMethods(value: unknown, methods: readonly string[]): readonly string[] {
  const given = (value ?? {}) as Partial<Record<string, unknown>>
  return methods.filter((name) => typeof given[name] !== 'function')
}

function unknownKeys(schema: Schema<unknown>, value: unknown): readonly SchemaIssue[] {
  const issues = schema.safeParse(value).error?.issues ?? []
  return issues.filter(({ code }) => code === 'unrecognized_keys')
}

function hasUndefined(value: unknown): boolean {
  return isPlain(value) && Object.values(value).some((v) => v === undefined || hasUndefined(v))
}

/**
 * The options without those that are `undefined`, so that callers can pass theirs straight through. Other objects (a
 * store, a clock, a dispatcher, a list) are not options objects and stay unchanged.
 */
function withoutUndefined(value: unknown): unknown {
  if (!isPlain(value)) return value
  const given = Object.entries(value).filter(([, option]) => option !== undefined)
  return Object.fromEntries(given.map(([key, option]) => [key, nested(option)]))
}

function nested(option: unknown): unknown {
  const isOptions = isPlain(option) && !Object.values(option).some((v) => typeof v === 'function')
  return isOptions ? withoutUndefined(option) : option
}

function isPlain(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}
