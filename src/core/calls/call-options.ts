import * as z from 'zod/mini'
import type { DrainableProvider } from '../../provider/contract.js'
import type { Clock } from '../../provider/clock.js'
import { clockOption, fn, signalOption } from '../../provider/option-schemas.js'
import { DrainableError } from '../../provider/error.js'
import type { DrainEvent } from '../events.js'
import { isPromise, missingMethods, once, parseOptions, readGiven } from '../../provider/options.js'

/** The options that every verb takes. */
export interface Call {
  /** Ends the call at once: it rejects with `signal.reason`. */
  readonly signal?: AbortSignal | undefined
  /** The clock to measure by. Default: the real clock. */
  readonly clock?: Clock | undefined
  /**
   * Called with every event. An error that it throws, or rejects with, becomes an uncaught error of the process and is never
   * swallowed: catch inside it what must not end the process.
   */
  readonly onEvent?: ((event: DrainEvent) => void) | undefined
}

/** The fields of {@link Call}. */
export const callShape = once(() => ({
  signal: z.exactOptional(signalOption()),
  clock: z.exactOptional(clockOption()),
  onEvent: z.exactOptional(fn<NonNullable<Call['onEvent']>>()),
}))

/** The schema of {@link Call}. */
export const callSchema = once(() => z.strictObject(callShape()))

/** What is given at all: a promise, or a text, has no options. */
const anyOptions = /* @__PURE__ */ once(() => z.looseObject({}))

type Given = Readonly<Record<string, unknown>>

/**
 * The options of a call in two parts, each of which has a schema of its own: those of the call itself, and the rest, which are a
 * drain's.
 *
 * @param own - the names of the call's own options
 * @param names - every option that the caller can give
 * @throws `INVALID_OPTIONS` where something other than options was given
 */
export function splitOptions(
  given: unknown,
  own: readonly string[],
  names: readonly string[],
  subject: string,
): { readonly own: Given; readonly rest: Given } {
  const all = Object.entries(parseOptions(anyOptions(), given, subject, names))
  return {
    own: Object.fromEntries(all.filter(([name]) => own.includes(name))),
    rest: Object.fromEntries(all.filter(([name]) => !own.includes(name))),
  }
}

/** The same as `engines` of package.json, which npm only warns about. */
const OLDEST = [22, 19] as const

/**
 * Refuses an older Node, which would fail late and without a cause: `Promise.withResolvers is not a function`, in the
 * middle of a drain.
 */
function checkNode(): void {
  // A runtime other than Node can have no such version.
  const version = process.versions.node as string | undefined
  if (version === undefined) return
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])) return
  const words = `drainable needs Node.js ${OLDEST.join('.')} or newer, and this is ${version}`
  throw new DrainableError('UNSUPPORTED', words)
}

const METHODS = ['describe', 'observe', 'apply', 'close'] as const

/**
 * Checks that a value is a provider before it is called.
 *
 * @throws `INVALID_OPTIONS` naming what is missing; `UNSUPPORTED` if Node is too old
 */
export function checkProvider(value: unknown, subject: string): DrainableProvider {
  checkNode()
  return readGiven(`${subject}: provider`, () => toProvider(value, subject))
}

function toProvider(value: unknown, subject: string): DrainableProvider {
  const given = (value ?? {}) as Partial<Record<string, unknown>>
  const missing = [
    ...missingMethods(value, METHODS).map((name) => `${name}()`),
    ...['name', 'instance'].filter((field) => typeof given[field] !== 'string'),
  ]
  const { specVersion = 1 } = given
  if (missing.length === 0 && specVersion === 1) return value as DrainableProvider
  if (value === undefined) {
    throw new DrainableError(
      'INVALID_OPTIONS',
      `${subject}: provider: is missing; pass what a factory such as haproxyRuntime() gave`,
    )
  }
  const remedy =
    (missing.length === 0 ? `one of specVersion ${String(specVersion)}, not 1` : instead(value)) ??
    `${found(value)} without ${missing.join(', ')}; pass what a factory such as haproxyRuntime() gave`
  throw new DrainableError(
    'INVALID_OPTIONS',
    `${subject}: provider: expected a DrainableProvider, found ${remedy}`,
  )
}

/** What was clearly given in place of a provider, and what to do. */
function instead(value: unknown): string | undefined {
  if (typeof value === 'function') return 'a function: call it, and pass what it gives'
  if (isPromise(value)) return 'a promise: await it first'
  if (typeof value !== 'object' || value === null) return undefined
  if (Object.getPrototypeOf(value) === Object.prototype && ('pools' in value || 'drain' in value))
    return 'options: the provider comes first: reconcile(lb, { ... })'
  const parts: readonly unknown[] = Object.values(value)
  return parts.length > 0 && parts.every(isProvider)
    ? 'several: make one of them, combineProviders({ edgeA, edgeB })'
    : undefined
}

/** Whether something has the methods of a provider. */
export function isProvider(value: unknown): boolean {
  return missingMethods(value, METHODS).length === 0
}

function found(value: unknown): string {
  if (typeof value === 'object' && value !== null) return 'an object'
  return typeof value === 'string' ? 'a text' : String(value)
}
