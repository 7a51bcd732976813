import { unknownName } from '../provider/describe-issue.js'
import { DrainableError } from '../provider/error.js'
import type { MemberRef } from '../provider/contract.js'
import { formatRef } from '../provider/member-ref.js'

/** What an option of a fake is, by `typeof`; `pools`: lists of members by pool. */
export type OptionKind = 'string' | 'boolean' | 'number' | 'object' | 'pools' | 'any'

function fits(kind: OptionKind, value: unknown): boolean {
  if (kind === 'any') return true
  if (kind !== 'pools' && kind !== 'object') return typeof value === kind
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  return kind === 'object' || Object.values(value).every((pool) => typeof pool === 'object')
}

/**
 * Refuses options that the fake does not know, or of another type: that would be a test of something else.
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
  for (const [key, value] of Object.entries(options) as [string, unknown][]) {
    const kind = Object.hasOwn(known, key) ? known[key] : undefined
    if (kind === undefined) throw wrongOption(unknownName(key, Object.keys(known)))
    if (value !== undefined && !fits(kind, value))
      throw wrongOption(
        `${key}: expected ${kind === 'pools' ? 'an object of lists' : kind}, found ${JSON.stringify(value)}`,
      )
  }
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
