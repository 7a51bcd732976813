import { nearest, quotedList } from './nearest.js'
import { quote } from './quote.js'

/** The part of a zod 4 schema that is used here: a caller's zod can be another copy than ours. */
export interface Schema<T> {
  /** Returns the checked value, or every issue. Does not throw. */
  safeParse(value: unknown):
    | { readonly success: true; readonly data: T; readonly error?: undefined }
    | {
        readonly success: false
        readonly data?: undefined
        readonly error: { readonly issues: readonly SchemaIssue[] }
      }
}

/** One issue that a schema reports. */
export interface SchemaIssue {
  readonly code?: string | undefined
  readonly path: readonly PropertyKey[]
  readonly message: string
  /** The unknown keys. */
  readonly keys?: readonly string[]
  /** The allowed values, for a choice between values. */
  readonly values?: readonly unknown[]
  /** The kind of a value that is too small or too big: a number, a text, a list. */
  readonly origin?: string
  readonly minimum?: number | bigint
  readonly maximum?: number | bigint
  /** The issues under each form, for a choice between forms. */
  readonly errors?: readonly (readonly SchemaIssue[])[]
}

/** Describes one issue: the field, what was expected, and for an unknown name the one that was probably meant. */
export function describeIssue(
  issue: SchemaIssue,
  schema: Schema<unknown>,
  names = optionNames(schema, []),
): string {
  const nested = issue.code === 'invalid_union' ? nearestBranch(issue) : undefined
  if (nested !== undefined) {
    return nested
      .map((inner) =>
        describeIssue({ ...inner, path: [...issue.path, ...inner.path] }, schema, names),
      )
      .join('; ')
  }
  const field = issue.path.length === 0 ? 'the options' : formatPath(issue.path)
  if (issue.code === 'unrecognized_keys') {
    const isOuter = issue.path.length === 0
    const known = isOuter ? names : optionNames(schema, issue.path)
    return `${isOuter ? '' : `${field}: `}${unknownNames(issue.keys ?? [], known)}`
  }
  const message =
    issue.path.length === 0 && /expected object/.test(issue.message)
      ? optionsExpected(issue, names)
      : plain(issue)
  return message.startsWith('is ') ? `${field} ${message}` : `${field}: ${message}`
}

/** Describes all unknown options. The list of known ones comes once, after those with a near match. */
function unknownNames(given: readonly string[], known: readonly string[]): string {
  const strange = given.filter((key) => nearest(key, known) === undefined)
  const meant = given.filter((key) => !strange.includes(key)).map((key) => unknownName(key, known))
  const [first, ...more] = strange
  if (first === undefined) return meant.join('; ')
  const others = more.length === 0 ? '' : `unknown option ${quotedList(more)}; `
  return [...meant, `${others}${unknownName(first, known)}`].join('; ')
}

/** Describes an unknown option, with the one that was probably meant, or all known options. */
export function unknownName(given: string, known: readonly string[]): string {
  const said = `unknown option '${quote(given)}'`
  if (known.length === 0) return `${said}, check the spelling`
  const meant = nearest(given, known)
  return meant === undefined
    ? `${said}, expected one of ${quotedList(known, 40)}`
    : `${said}, did you mean '${meant}'?`
}

/** Describes a value that is not an options object: a factory called without options, or with a bare path. */
function optionsExpected(issue: SchemaIssue, known: readonly string[]): string {
  const found = /received (\w+)/.exec(issue.message)?.[1] ?? 'something else'
  const names = known.length === 0 ? '' : ` with options such as ${quotedList(known, 4)}`
  return `expected an object${names}, found ${found}`
}

/** Zod's own words say `Too small: expected number to be >=1`. */
function plain(issue: SchemaIssue): string {
  const { code, values, minimum, maximum, origin } = issue
  if (code === 'invalid_value' && values !== undefined && values.length > 1)
    return `expected one of ${quotedList(values.map(String))}`
  if (code === 'too_small' && /^Too small/.test(issue.message)) {
    if (origin === 'string') return 'expected a text that is not empty'
    if (origin === 'array') return `expected at least ${String(minimum)}`
    return `expected a number from ${String(minimum)}`
  }
  if (code === 'too_big' && /^Too big/.test(issue.message)) {
    return origin === 'number' || origin === 'int'
      ? `expected a number up to ${String(maximum)}`
      : `expected at most ${String(maximum)}`
  }
  return inWords(issue.message)
}

const KINDS: Readonly<Record<string, string>> = {
  array: 'a list',
  string: 'a text',
  number: 'a number',
  boolean: 'true or false',
  object: 'an object',
}

/** Zod's own `expected array, received undefined`. */
export function inWords(message: string): string {
  const [, kind = '', found = ''] = /expected (\w+), received (\w+)/.exec(message) ?? []
  const expected = KINDS[kind]
  if (expected === undefined) return message.replace(/^Invalid input: /, '')
  return found === 'undefined'
    ? `is missing, expected ${expected}`
    : `expected ${expected}, found ${KINDS[found] ?? found}`
}

/** The part of a zod schema that is read to list its option names; a caller's zod can be another copy. */
interface SchemaNode {
  readonly shape?: Readonly<Record<string, SchemaNode>>
  readonly def?: {
    readonly innerType?: SchemaNode
    readonly in?: SchemaNode
    readonly options?: readonly SchemaNode[]
  }
}

/** The names of the options of a schema, at a place in it. */
export function optionNames(schema: object, path: readonly PropertyKey[]): readonly string[] {
  let node = opened(schema)
  for (const part of path) node = opened(node?.shape?.[String(part)])
  return Object.keys(node?.shape ?? {})
}

/** The object schema inside wrappers that make it optional, give it a default, or transform it. */
function opened(node: SchemaNode | undefined): SchemaNode | undefined {
  let at = node
  while (at !== undefined && at.shape === undefined) {
    const { innerType, in: input, options } = at.def ?? {}
    at = innerType ?? input ?? options?.find((option) => option.shape !== undefined)
  }
  return at
}

/** The issues inside the form that was clearly meant, if any: they say more than the list of forms. */
function nearestBranch(issue: SchemaIssue): readonly SchemaIssue[] | undefined {
  return issue.errors?.find((branch) => branch.every(({ path }) => path.length > 0))
}

/** Where in what was given: `steps[0].change`. */
export function formatPath(path: readonly PropertyKey[]): string {
  return path
    .map((part, i) =>
      typeof part === 'number' ? `[${part}]` : `${i === 0 ? '' : '.'}${String(part)}`,
    )
    .join('')
}
