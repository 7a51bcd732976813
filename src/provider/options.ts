import type { ZodType, core } from 'zod'
import { DrainableError } from './error.js'

/**
 * Checks what a caller gave against a schema and returns a frozen copy.
 *
 * @param schema - a strict zod schema: unknown keys are errors, a typo in `timeout` must not mean "for ever"
 * @param value - what the caller gave; never changed
 * @param subject - whose options, for the message: `haproxyRuntime()`, `drain()`
 * @throws `INVALID_OPTIONS` naming every wrong field, what was expected and what was found; never the value of a secret
 */
export function parseOptions<T>(schema: ZodType<T>, value: unknown, subject: string): Readonly<T> {
  const result = schema.safeParse(value)
  if (result.success) return Object.freeze(result.data)
  const problems = result.error.issues.map(describeIssue)
  throw new DrainableError('INVALID_OPTIONS', `${subject}: ${problems.join('; ')}`)
}

function describeIssue(issue: core.$ZodIssue): string {
  const field = issue.path.length === 0 ? 'the options' : formatPath(issue.path)
  if (issue.code === 'unrecognized_keys') {
    const keys = issue.keys.map((key) => `'${key}'`).join(', ')
    return `${issue.path.length === 0 ? '' : `${field}: `}unknown option ${keys}, check the spelling`
  }
  const message = issue.message.replace(/^Invalid input: /, '')
  return `${field}: ${message}`
}

function formatPath(path: readonly PropertyKey[]): string {
  return path
    .map((part, i) =>
      typeof part === 'number' ? `[${part}]` : `${i === 0 ? '' : '.'}${String(part)}`,
    )
    .join('')
}
