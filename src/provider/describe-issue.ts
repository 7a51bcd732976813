import { nearest, quotedList } from './nearest.js'
import { quote } from './quote.js'

/** What a schema of zod 4 can do, as far as it is used here: a caller's own zod may be another copy than ours. */
export interface Schema<T> {
  /** The checked value, or every issue that it has. Nothing is thrown. */
  safeParse(value: unknown):
    | { readonly success: true; readonly data: T; readonly error?: undefined }
    | {
        readonly success: false
        readonly data?: undefined
        readonly error: { readonly issues: readonly SchemaIssue[] }
      }
}

/** One thing that a schema finds wrong. */
export interface SchemaIssue {
  readonly code?: string | undefined
  readonly path: readonly PropertyKey[]
  readonly message: string
  /** The keys that are none of its own. */
  readonly keys?: readonly string[]
  /** Of a choice between values: the values. */
  readonly values?: readonly unknown[]
  /** What a value that is too small or too big is: a number, a text, a list. */
  readonly origin?: string
  readonly minimum?: number | bigint
  readonly maximum?: number | bigint
  /** Of a choice: what is wrong under each of its forms. */
  readonly errors?: readonly (readonly SchemaIssue[])[]
}

/** One issue in words: the field, what was expected, and for an unknown name which one was probably meant. */
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

/** All there are is said once, after those that are near to none of them. */
function unknownNames(given: readonly string[], known: readonly string[]): string {
  const strange = given.filter((key) => nearest(key, known) === undefined)
  const meant = given.filter((key) => !strange.includes(key)).map((key) => unknownName(key, known))
  const [first, ...more] = strange
  if (first === undefined) return meant.join('; ')
  const others = more.length === 0 ? '' : `unknown option ${quotedList(more)}; `
  return [...meant, `${others}${unknownName(first, known)}`].join('; ')
}

/** An option that there is none of, with the one that was probably meant, or all that there are. */
export function unknownName(given: string, known: readonly string[]): string {
  const said = `unknown option '${quote(given)}'`
  if (known.length === 0) return `${said}, check the spelling`
  const meant = nearest(given, known)
  return meant === undefined
    ? `${said}, expected one of ${quotedList(known, 40)}`
    : `${said}, did you mean '${meant}'?`
}

/** What stands in place of all options: a factory called with nothing, or with a bare path. */
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
  return issue.message.replace(/^Invalid input: /, '')
}

/** As much of a zod schema as is read to tell its option names; a caller's zod may be another copy. */
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

/** The object schema inside what makes it optional, gives it a default, or reads it further. */
function opened(node: SchemaNode | undefined): SchemaNode | undefined {
  let at = node
  while (at !== undefined && at.shape === undefined) {
    const { innerType, in: input, options } = at.def ?? {}
    at = innerType ?? input ?? options?.find((option) => option.shape !== undefined)
  }
  return at
}

/** Where one form of several was clearly meant, what is wrong inside it says more than the list of forms. */
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
