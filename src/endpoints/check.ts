import { DrainableError } from '../provider/error.js'

/**
 * Input of a shape that the types do not allow: says where, what was found and what was expected.
 *
 * @param subject - the function called, such as `mergeSlices()`
 * @param path - the place in its input, such as `slices[2].endpoints[0].addresses`
 */
export function refuse(subject: string, path: string, found: unknown, expected: string): never {
  const was = found === undefined ? 'is missing' : `is ${show(found)}`
  throw new DrainableError('INVALID_OPTIONS', `${subject}: ${path} ${was}, expected ${expected}`)
}

/** An object that is no array. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Options with known keys only: a typo must not mean the default. */
export function checkOptions(subject: string, options: unknown, known: readonly string[]): void {
  if (!isObject(options)) refuse(subject, 'the options', options, 'an object')
  const unknown = Object.keys(options).filter((key) => !known.includes(key))
  if (unknown.length > 0) {
    throw new DrainableError(
      'INVALID_OPTIONS',
      `${subject}: unknown option ${unknown.map((key) => `'${key}'`).join(', ')}, expected one of ${known.join(', ')}`,
    )
  }
}

/** One of some words, or not given. */
export function checkWord(
  subject: string,
  path: string,
  value: unknown,
  words: readonly string[],
): void {
  if (value === undefined || (typeof value === 'string' && words.includes(value))) return
  refuse(subject, path, value, words.map((word) => `'${word}'`).join(' or '))
}

/** A text, or nothing where nothing is allowed. */
export function checkText(subject: string, path: string, value: unknown): void {
  if (value !== undefined && value !== null && typeof value !== 'string') {
    refuse(subject, path, value, 'a text')
  }
}

/** True, false, or nothing. */
export function checkFlag(subject: string, path: string, value: unknown): void {
  if (value !== undefined && value !== null && typeof value !== 'boolean') {
    refuse(subject, path, value, 'true or false')
  }
}

/** A list of texts, or nothing. */
export function checkTexts(subject: string, path: string, value: unknown): void {
  if (value === undefined || value === null) return
  if (!Array.isArray(value)) refuse(subject, path, value, 'a list of texts')
  for (const [i, text] of value.entries()) {
    if (typeof text !== 'string') refuse(subject, `${path}[${i}]`, text, 'a text')
  }
}

/** A TCP or UDP port, or nothing. */
export function checkPort(subject: string, path: string, value: unknown): void {
  if (value !== undefined && !isPort(value)) refuse(subject, path, value, A_PORT)
}

export const A_PORT = 'a port from 1 to 65535'

/** A whole number from 1 to 65535. */
export function isPort(value: unknown): value is number {
  return typeof value === 'number' && value >= 1 && value <= 65_535 && Number.isInteger(value)
}

export const AN_AMOUNT = 'a finite number from 0'

/** A weight or a count: no NaN, nothing infinite, nothing below 0. */
export function isAmount(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value < Infinity
}

function show(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value)
    case 'object':
      if (value === null) return 'null'
      return Array.isArray(value) ? 'a list' : 'an object'
    case 'function':
      return 'a function'
    case 'bigint':
      return `${value}n`
    case 'number':
    case 'boolean':
    case 'symbol':
    case 'undefined':
      return String(value)
  }
}
