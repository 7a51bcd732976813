import {
  describeIssue,
  optionNames,
  optionWords,
  type Schema,
  type SchemaIssue,
} from './describe-issue.js'
import { DrainableError, isDrainableError, type ErrorCode } from './error.js'
import { quote } from './quote.js'

export type { Schema, SchemaIssue, WordlessIssue } from './describe-issue.js'

/**
 * Checks what a caller gave against a schema and returns a frozen copy.
 *
 * @param schema - a strict zod schema: unknown keys are errors, a typo in `timeout` must not mean "for ever"
 * @param value - what the caller gave; never changed. An option that is `undefined` is absent
 * @param subject - whose options, for the message: `haproxyRuntime()`, `drain()`
 * @param names - every option that the caller can give, where the schema is for a part of them
 * @throws `INVALID_OPTIONS` naming every wrong field, what was expected and what was found; never the value of a secret
 */
export function parseOptions<T>(
  schema: Schema<T>,
  value: unknown,
  subject: string,
  names: readonly string[] = optionNames(schema, []),
): Readonly<T> {
  const { other, given } = readGiven(`${subject}: the options`, () => ({
    other: otherThanOptions(value),
    given: readAll(ofClass(names, value, subject), subject),
  }))
  if (other !== undefined) throw invalid(`${subject}: the options: ${other}`)
  for (const [key, option] of Object.entries(Object(given) as Given)) {
    // Any object passes where all options are optional: the promise of `tls` would switch its checks to their defaults.
    if (optionNames(schema, [key]).length === 0) continue
    const wrong = readGiven(`${subject}: ${quote(key)}`, () => otherThanOptions(option))
    if (wrong !== undefined) throw invalid(`${subject}: ${quote(key)}: ${wrong}`)
  }
  const result = schema.safeParse(withoutUndefined(given), { error: optionWords(names) })
  // A misspelt name is an error even if its value is undefined.
  const unknown = hasUndefined(given) ? unknownKeys(schema, given) : []
  if (result.success && unknown.length === 0) return Object.freeze(result.data)
  const issues = [...(result.error?.issues ?? []), ...unknown]
  const words = new Set(issues.map((issue) => describeIssue(issue, schema, names)))
  throw invalid(`${subject}: ${[...words].join('; ')}`)
}

function invalid(message: string): DrainableError {
  return new DrainableError('INVALID_OPTIONS', message)
}

/**
 * Reads what a caller gave, where a getter or a proxy can throw.
 *
 * @param what - what is read, with its subject
 * @throws errors of this package as they are; anything else as this code, with its words
 */
export function readGiven<T>(what: string, read: () => T, code: ErrorCode = 'INVALID_OPTIONS'): T {
  try {
    return read()
  } catch (thrown) {
    if (isDrainableError(thrown)) throw thrown
    const words = thrown instanceof Error ? thrown.message : String(thrown)
    throw new DrainableError(code, `${what}: its getter threw '${quote(words)}'`, { cause: thrown })
  }
}

/** Whether something is a promise, which was not waited for. */
export function isPromise(value: unknown): boolean {
  return typeof (Object(value) as { readonly then?: unknown }).then === 'function'
}

/** Objects without an option of their own: each would be taken for no options at all. */
const WITHOUT_OPTIONS = /^\[object (Map|Set|Date|RegExp|Error)\]$/

/** What was given in place of options, in words. */
export function otherThanOptions(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  if (isPromise(value)) return 'found a promise; await it first'
  if (value instanceof AbortSignal) return 'found an AbortSignal; write { signal }'
  const [, kind] = WITHOUT_OPTIONS.exec(Object.prototype.toString.call(value)) ?? []
  return kind === undefined
    ? undefined
    : `expected an object, found ${kind === 'Error' ? 'an' : 'a'} ${kind}`
}

/** The methods that a caller's value lacks: all of them if it is not an object. */
export function missingMethods(value: unknown, methods: readonly string[]): readonly string[] {
  const given = (value ?? {}) as Partial<Record<string, unknown>>
  return methods.filter((name) => typeof given[name] !== 'function')
}

/** What an instance of a class has of its own, inherits, and tells by a getter, as a plain object. */
function ofClass(names: readonly string[], value: unknown, subject: string): unknown {
  if (typeof value !== 'object' || Array.isArray(value) || isPlain(value)) return value
  const given = value as Given | null
  const keys = new Set(names)
  for (const key in given) keys.add(key)
  return given === null ? null : readKeys(given, [...keys], subject)
}

/** Options read once, also those in an option, so that a getter that throws is the caller's error, with its words. */
function readAll(value: unknown, subject: string): unknown {
  if (!isPlain(value)) return value
  const given = readKeys(value as Given, Object.keys(value), subject)
  const read = Object.entries(given).map(([key, option]) => {
    if (!isPlain(option)) return [key, option]
    const inner = readKeys(option as Given, Object.keys(option), subject, `${key}.`)
    return [key, isOptions(inner) ? inner : option]
  })
  return Object.fromEntries(read)
}

type Given = Readonly<Record<string, unknown>>

/** @param path - what stands before each key, for the message */
function readKeys(given: Given, keys: readonly string[], subject: string, path = ''): Given {
  const read = (key: string): unknown =>
    readGiven(`${subject}: ${quote(path + key)}`, () => given[key])
  return Object.fromEntries(keys.map((key) => [key, read(key)]))
}

function unknownKeys(schema: Schema<unknown>, value: unknown): readonly SchemaIssue[] {
  const issues = schema.safeParse(value).error?.issues ?? []
  return issues.filter(({ code }) => code === 'unrecognized_keys')
}

/** Whether an option is `undefined`, or one of the options inside an option. */
function hasUndefined(value: unknown): boolean {
  if (!isPlain(value)) return false
  return Object.values(value).some((v) => v === undefined || (isOptions(v) && lacksOne(v)))
}

function lacksOne(options: object): boolean {
  return Object.values(options).some((v) => v === undefined)
}

/**
 * The options without those that are `undefined`, so that callers can pass theirs straight through; options lie at most
 * two deep (`tls.ca`). Other objects (a store, a clock, a dispatcher, a list) are not options objects and stay
 * unchanged.
 */
function withoutUndefined(value: unknown): unknown {
  if (!isPlain(value)) return value
  const given = defined(value).map(([key, option]) => [
    key,
    isOptions(option) ? Object.fromEntries(defined(option)) : option,
  ])
  return Object.fromEntries(given)
}

function defined(options: object): [string, unknown][] {
  return Object.entries(options).filter(([, option]) => option !== undefined)
}

function isOptions(option: unknown): option is object {
  return isPlain(option) && !Object.values(option).some((v) => typeof v === 'function')
}

function isPlain(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

/** What is wrong with a path that only a shell understands (`~/drains`, `~user/drains`); undefined for any other. */
export function homePath(path: string): string | undefined {
  return /^~[\w.-]*(?:[/\\]|$)/.test(path)
    ? "'~' means nothing outside of a shell; write join(homedir(), ...)"
    : undefined
}

/**
 * Makes a value at its first use, and keeps it. Used for schemas: building all of them takes longer than the rest of
 * an import of the package, and a script needs few. Where a call of it is marked `@__PURE__`, bundlers leave a schema out that no verb of a program asks for.
 */
export function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined
  return () => (made ??= { value: make() }).value
}
