/**
 * The one checker of everything that a caller gives. A {@link Shape} says what is wrong with a value; {@link check} throws
 * it. The shapes of slices, nodes, endpoints and plans stand beside their types, one line a field.
 *
 * Shapes are walked for a hundred thousand endpoints at every turn of a controller, so the value itself is left as it is
 * (no copy), and a path becomes text only where something is wrong. Fields that a shape does not name are ignored.
 *
 * There are two ways to write the fields of an object. What is there once is an {@link object}. What is there for each
 * endpoint is a function with a line of {@link at} for each field: `bench/endpoints/merge-and-map.ts` takes three times
 * as long where an object reads the fields of every endpoint by their names.
 */
import { DrainableError } from '../provider/error.js'
import { otherThanOptions, readGiven } from '../provider/options.js'

/** What is wrong with a value, or undefined. */
export type Shape = (value: unknown) => Fault | undefined

/** What is wrong, and where below the value: `.ports[0].name`. */
export interface Fault {
  readonly path: string
  readonly words: string
}

/**
 * Lets a value of this shape pass.
 *
 * @param subject - the function called, such as `mergeSlices()`
 * @param path - what the value is to the caller, such as `slices`
 * @throws `INVALID_OPTIONS` with the place, what was found and what was expected
 */
export function check(subject: string, path: string, value: unknown, shape: Shape): void {
  const fault = readGiven(`${subject}: ${path}`, () => shape(value))
  if (fault !== undefined) refuseWith(subject, path + fault.path, fault)
}

/** The same for options: their fields are named by themselves, and a typo must not mean the default. */
export function checkOptions<T extends object>(subject: string, options: T, of: All<T>): void {
  const { other, fault } = readGiven(`${subject}: the options`, () => ({
    other: otherThanOptions(options),
    fault: strictObject(of)(options),
  }))
  if (other !== undefined)
    throw new DrainableError('INVALID_OPTIONS', `${subject}: the options: ${other}`)
  if (fault === undefined) return
  if (fault.path !== '') refuseWith(subject, fault.path.slice(1), fault)
  refuseWith(subject, 'the options', { ...fault, words: fault.words.replace(/^ is /, ' are ') })
}

/** A value that is wrong for a reason of its own. */
export function refuse(subject: string, path: string, found: unknown, expected: string): never {
  return refuseWith(subject, path, wrong(found, expected))
}

function refuseWith(subject: string, place: string, { words }: Fault): never {
  throw new DrainableError('INVALID_OPTIONS', `${subject}: ${place}${words}`)
}

/** One value, by a test of it. */
export function value(expected: string, is: (value: unknown) => boolean): Shape {
  return (found) => (is(found) ? undefined : wrong(found, expected))
}

export function isText(found: unknown): found is string {
  return typeof found === 'string'
}

export function text(found: unknown): Fault | undefined {
  return typeof found === 'string' ? undefined : wrong(found, 'a text')
}

export function flag(found: unknown): Fault | undefined {
  return typeof found === 'boolean' ? undefined : wrong(found, 'true or false')
}

export function fn(found: unknown): Fault | undefined {
  return typeof found === 'function' ? undefined : wrong(found, 'a function')
}

export function port(found: unknown): Fault | undefined {
  return isWhole(found, 1, 65_535) ? undefined : wrong(found, 'a port from 1 to 65535')
}

/** A weight or a count: no NaN, nothing infinite, nothing below 0. */
export function amount(found: unknown): Fault | undefined {
  const isAmount = typeof found === 'number' && found >= 0 && found < Infinity
  return isAmount ? undefined : wrong(found, 'a finite number from 0')
}

/** A text with something in it. */
export function filled(found: unknown, expected: string): Fault | undefined {
  return typeof found === 'string' && found !== '' ? undefined : wrong(found, expected)
}

/** One of some words. */
export function oneOf(found: unknown, words: readonly string[]): Fault | undefined {
  if (words.includes(found as string)) return undefined
  const quoted = words.map((one) => `'${one}'`)
  return wrong(found, `${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1) ?? ''}`)
}

/** The shape of {@link oneOf}. */
export function word(...words: readonly string[]): Shape {
  return (found) => oneOf(found, words)
}

/** A value that may be left out. */
export function optional(shape: Shape): Shape {
  return (found) => opt(found, shape)
}

/** The same at once: the fields of an endpoint are looked at the most. */
export function opt(found: unknown, shape: Shape): Fault | undefined {
  return found === undefined ? undefined : shape(found)
}

/** A value that may be left out, or `null`: Kubernetes writes both. */
export function nullable(shape: Shape): Shape {
  return (found) => orNone(found, shape)
}

/** A text, or nothing. */
export function textOrNone(found: unknown): Fault | undefined {
  return found === undefined || found === null ? undefined : text(found)
}

/** The same as {@link nullable}, at once. */
export function orNone(found: unknown, shape: Shape): Fault | undefined {
  return found === undefined || found === null ? undefined : shape(found)
}

/** A list; a place without a value is not skipped. */
export function list(expected: string, of: Shape): Shape {
  return (found) => each(found, expected, of)
}

/** A list of texts, in a loop of its own: each endpoint has one of addresses. */
export function texts(found: unknown, expected = 'a list of texts'): Fault | undefined {
  if (!Array.isArray(found)) return wrong(found, expected)
  for (let i = 0; i < found.length; i++) {
    if (typeof found[i] !== 'string') return atPlace(i, wrong(found[i], 'a text'))
  }
  return undefined
}

/** The same as {@link list}, at once. */
export function each(found: unknown, expected: string, of: Shape): Fault | undefined {
  if (!Array.isArray(found)) return wrong(found, expected)
  for (let i = 0; i < found.length; i++) {
    const fault = of(found[i])
    if (fault !== undefined) return atPlace(i, fault)
  }
  return undefined
}

function atPlace(i: number, fault: Fault): Fault {
  return { ...fault, path: `[${i}]${fault.path}` }
}

/** The fault of a field, below its object. */
export function at(key: string, fault: Fault | undefined): Fault | undefined {
  return fault === undefined ? undefined : below(key, fault)
}

function below(key: string, fault: Fault): Fault {
  const step = /^\w+$/.test(key) ? `.${key}` : `['${key}']`
  return { ...fault, path: step + fault.path }
}

/** The shapes of some fields, and of all of them. */
export type Fields<T> = { readonly [K in keyof T]?: Shape }
type All<T> = { readonly [K in keyof T]-?: Shape }

/** An object with fields of these shapes, checked in this order. */
export function object<T extends object>(expected: string, fields: Fields<T>): Shape {
  const shapes = Object.entries(fields) as [string, Shape][]
  return (found) => {
    if (!isObject(found)) return wrong(found, expected)
    for (const [key, shape] of shapes) {
      const fault = at(key, shape(found[key]))
      if (fault !== undefined) return fault
    }
    return undefined
  }
}

/** An object with no other fields than these. */
export function strictObject<T extends object>(fields: All<T>): Shape {
  const shape = object('an object', fields)
  return (found) => {
    const others = isObject(found)
      ? Object.keys(found).filter((key) => !Object.hasOwn(fields, key))
      : []
    if (others.length === 0) return shape(found)
    const unknown = others.map((key) => `'${key}'`).join(', ')
    const known = Object.keys(fields).join(', ')
    return { path: '', words: `: unknown option ${unknown}, expected one of ${known}` }
  }
}

/** The same fault, where a person knows the object by a name: `slices[2] (web-x7k2p)`. */
export function named(name: unknown, fault: Fault | undefined): Fault | undefined {
  if (fault === undefined || typeof name !== 'string') return fault
  return { ...fault, path: ` (${name})${fault.path}` }
}

/** An object with fields that nobody checked yet. */
export type Loose = Readonly<Record<string, unknown>>

/** An object that is no array. */
export function isObject(found: unknown): found is Loose {
  return typeof found === 'object' && found !== null && !Array.isArray(found)
}

/** A whole number in these bounds. */
export function isWhole(found: unknown, least: number, most: number): boolean {
  return typeof found === 'number' && found >= least && found <= most && Number.isInteger(found)
}

/** A fault of the value itself. */
export function wrong(found: unknown, expected: string): Fault {
  const was = found === undefined ? 'is missing' : `is ${show(found)}`
  return { path: '', words: ` ${was}, expected ${expected}` }
}

function show(found: unknown): string {
  switch (typeof found) {
    case 'string':
      return JSON.stringify(found.length > 60 ? `${found.slice(0, 60)}…` : found)
    case 'object':
      if (found === null) return 'null'
      return Array.isArray(found) ? 'a list' : 'an object'
    case 'function':
      return 'a function'
    case 'bigint':
      return `${found}n`
    case 'number':
    case 'boolean':
    case 'symbol':
    case 'undefined':
      return String(found)
  }
}
