import { X509Certificate } from 'node:crypto'
import { unknownName } from '../provider/describe-issue.js'
import { DrainableError } from '../provider/error.js'
import type { MemberRef } from '../provider/contract.js'
import { formatRef } from '../provider/member-ref.js'
import { quote } from '../provider/quote.js'

/** What an option of a fake is: a kind, or one of these values. */
export type OptionKind = keyof typeof KINDS | readonly (string | boolean)[]

const KINDS = {
  text: ['a text', (one: unknown) => typeof one === 'string'],
  flag: ['true or false', (one: unknown) => typeof one === 'boolean'],
  number: ['a number', (one: unknown) => typeof one === 'number' && !Number.isNaN(one)],
  port: ['a port from 0 to 65535, 0 for any', (one: unknown) => isPort(one)],
  object: ['an object', isObject],
  pools: [
    "pools by name, such as { web: ['web1', 'web2'] }",
    (one: unknown) => isObject(one) && Object.values(one).every(isPool),
  ],
  clock: [
    'a clock with setTimeout()',
    (one: unknown) => isObject(one) && typeof one['setTimeout'] === 'function',
  ],
  switch: ['true, false or an object', (one: unknown) => typeof one === 'boolean' || isObject(one)],
  tls: ['true, false, or { key, cert } in PEM', isTls],
} as const satisfies Readonly<Record<string, readonly [string, (one: unknown) => boolean]>>

function isObject(one: unknown): one is Record<string, unknown> {
  return typeof one === 'object' && one !== null && !Array.isArray(one)
}

function isTls(one: unknown): boolean {
  if (!isObject(one)) return typeof one === 'boolean'
  return typeof one['key'] === 'string' && isCertificate(one['cert'])
}

function isCertificate(pem: unknown): boolean {
  try {
    return typeof pem === 'string' && new X509Certificate(pem).raw.length > 0
  } catch {
    return false
  }
}

function isPort(one: unknown): boolean {
  return Number.isInteger(one) && Number(one) >= 0 && Number(one) <= 65_535
}

/** A list of members, or an object that has it. */
function isPool(one: unknown): boolean {
  const members = isObject(one) ? (one['members'] ?? []) : one
  return (
    Array.isArray(members) && members.every((each) => typeof each === 'string' || isObject(each))
  )
}

/**
 * Refuses options that the fake does not know, or with a value of another type: it would be a test of something else.
 *
 * @param known - every option by its name
 * @throws `INVALID_OPTIONS`
 */
export function checkOptions(options: object, known: Readonly<Record<string, OptionKind>>): void {
  const given: unknown = options
  if (typeof given !== 'object' || given === null) {
    const names = Object.keys(known).slice(0, 3).join(', ')
    throw wrongOption(`expected an object of options such as ${names}, found ${String(given)}`)
  }
  for (const key of Object.keys(options)) {
    if (!Object.hasOwn(known, key)) throw wrongOption(unknownName(key, Object.keys(known)))
  }
  for (const [key, value] of Object.entries(options) as [string, unknown][]) {
    const kind = known[key]
    if (kind !== undefined && value !== undefined) checkValue(key, value, kind)
  }
}

function checkValue(key: string, value: unknown, kind: OptionKind): void {
  const [words, fits] =
    typeof kind === 'string'
      ? KINDS[kind]
      : ([
          `one of ${kind.map(shown).join(', ')}`,
          (one: unknown) => kind.includes(one as string),
        ] as const)
  if (!fits(value)) throw wrongOption(`${key}: expected ${words}, found ${shown(value)}`)
}

/** A value in a message, in a few letters. */
export function shown(value: unknown): string {
  if (typeof value === 'string') return `'${quote(value, 40)}'`
  if (typeof value === 'function') return 'a function'
  if (Array.isArray(value)) return 'a list'
  return typeof value === 'object' && value !== null ? 'an object' : String(value)
}

/** What {@link checkOptions} throws, for what else is wrong with an option. */
export function wrongOption(text: string, subject = 'startFake()'): DrainableError {
  return new DrainableError('INVALID_OPTIONS', `${subject}: ${text}`)
}

/** Whether it names a member at all: a test in JavaScript can give a text. */
export function isNamed({ pool, member }: Partial<MemberRef>): boolean {
  return typeof pool === 'string' && typeof member === 'string'
}

/** For a test that names a member by a text, or misspells it. */
export function noMember(ref: MemberRef, known: readonly MemberRef[]): Error {
  const names = known.slice(0, 10).map((each) => `'${formatRef(each)}'`)
  return new Error(
    isNamed(ref)
      ? `The fake has no member ${formatRef(ref)}, it has ${names.join(', ')}`
      : `expected a member such as { pool: 'web', member: 'web1' }, found ${JSON.stringify(ref)}`,
  )
}
