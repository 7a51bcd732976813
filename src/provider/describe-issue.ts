import { nearest, quote, quotedList } from './quote.js'

/** The part of a zod 4 schema that is used here: a caller's zod can be another copy than ours. */
export interface Schema<T> {
  /**
   * Returns the checked value, or every issue. Does not throw.
   *
   * @param params - `error`: words for each issue that the schema itself has none for
   */
  safeParse(
    value: unknown,
    params?: { readonly error?: (issue: WordlessIssue) => string | undefined },
  ):
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
  /** The issues under each form, for a choice between forms. */
  readonly errors?: readonly (readonly SchemaIssue[])[]
}

/** An issue as it is before it has words. */
export interface WordlessIssue {
  readonly code?: string | undefined
  readonly path?: readonly PropertyKey[] | undefined
  readonly input?: unknown
  /** The type that a value must have, as zod names it. */
  readonly expected?: unknown
  /** The allowed values, for a choice between values. */
  readonly values?: readonly unknown[]
  /** The allowed values of the field that tells forms apart. */
  readonly options?: readonly unknown[]
  /** The unknown keys. */
  readonly keys?: readonly string[]
  /** The kind of a value that is too small or too big, or holds a wrong one: a number, a text, a list. */
  readonly origin?: string
  readonly minimum?: number | bigint
  readonly maximum?: number | bigint
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
  const { message } = issue
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

/**
 * The words for issues of options.
 *
 * @param known - the options: some are named to a caller who gave no object, such as none at all, or a bare path
 */
export function optionWords(
  known: readonly string[],
): (issue: WordlessIssue) => string | undefined {
  const names = known.length === 0 ? '' : ` with options such as ${quotedList(known, 4)}`
  return (issue) => {
    const found = kindOf(issue.input)
    if (issue.expected === 'object' && (issue.path ?? []).length === 0)
      return `expected an object${names}, found ${found}`
    const expected = issue.code === 'invalid_type' ? KINDS[String(issue.expected)] : undefined
    if (expected === undefined) return issueWords(issue)
    return found === 'undefined'
      ? `is missing, expected ${expected}`
      : `expected ${expected}, found ${KINDS[found] ?? found}`
  }
}

const KINDS: Readonly<Record<string, string>> = {
  array: 'a list',
  string: 'a text',
  number: 'a number',
  boolean: 'true or false',
  object: 'an object',
  nonoptional: 'a value',
}

/**
 * The words for an issue that its schema has none for. They are the same whichever zod the schema is of: its small form
 * has no words at all.
 */
export function issueWords(issue: WordlessIssue): string | undefined {
  const { code, input, expected, values = [], keys = [], options, origin } = issue
  switch (code) {
    case 'invalid_type':
      return `expected ${String(expected)}, received ${kindOf(input)}`
    case 'invalid_value':
      return values.length === 1
        ? `expected ${JSON.stringify(values[0])}`
        : `expected one of ${quotedList(values.map(String))}`
    case 'invalid_union':
      return options && `expected one of ${quotedList(options.map(String))}`
    case 'invalid_key':
      return `Invalid key in ${String(origin)}`
    case 'unrecognized_keys':
      return `unknown ${quotedList(keys.map((key) => quote(key)))}`
    case 'too_small':
      if (origin === 'string') return 'expected a text that is not empty'
      return `expected ${origin === 'array' ? 'at least' : 'a number from'} ${String(issue.minimum)}`
    case 'too_big': {
      const isNumber = origin === 'number' || origin === 'int'
      return `expected ${isNumber ? 'a number up to' : 'at most'} ${String(issue.maximum)}`
    }
    default:
      return undefined
  }
}

/** The kind of a value, as zod names it: `array`, `null`, the class of an object, `NaN`. */
function kindOf(value: unknown): string {
  if (typeof value === 'number') return Number.isFinite(value) ? 'number' : String(value)
  if (value === null) return 'null'
  if (typeof value !== 'object') return typeof value
  if (Array.isArray(value)) return 'array'
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === null || prototype === Object.prototype) return 'object'
  const { constructor } = value as { readonly constructor?: { readonly name?: string } }
  return constructor?.name ?? 'object'
}

/** The part of a zod schema that is read to list its option names; a caller's zod can be another copy. */
interface SchemaNode {
  readonly shape?: Readonly<Record<string, SchemaNode>>
  readonly def?: {
    readonly innerType?: SchemaNode
    readonly in?: SchemaNode
    readonly valueType?: SchemaNode
    readonly options?: readonly SchemaNode[]
  }
}

/** The names of the options of a schema, at a place in it. */
export function optionNames(schema: object, path: readonly PropertyKey[]): readonly string[] {
  let node = opened(schema)
  for (const part of path) node = opened(node?.shape?.[String(part)] ?? node?.def?.valueType)
  return Object.keys(node?.shape ?? {})
}

/** The object schema inside wrappers that make it optional, give it a default, or transform it. */
function opened(node: SchemaNode | undefined): SchemaNode | undefined {
  let at = node
  while (at !== undefined && at.shape === undefined && at.def?.valueType === undefined) {
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
