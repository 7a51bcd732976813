import { unknownName } from '../provider/describe-issue.js'
import type { AdminState, Capabilities } from '../provider/contract.js'
import { quote, quotedList } from '../provider/quote.js'
import { missingMethods, readGiven } from '../provider/options.js'
import { wrongOption } from './check-options.js'
import type { FakeLeaseOptions } from './fake-lease.js'
import type { FakeProviderOptions } from './fake-provider.js'

const KNOWN = ['pools', 'clock', 'capabilities', 'latency', 'scopes', 'instance', 'whenNone']

/**
 * Reads the options of `fakeProvider()`, where a getter can throw. A misspelt one would be a test of something else.
 *
 * @throws `INVALID_OPTIONS`
 */
export function readFakeOptions(given: FakeProviderOptions): FakeProviderOptions {
  return readGiven('fakeProvider()', () => {
    checkFakeOptions(given)
    return { ...given }
  })
}

function checkFakeOptions(options: FakeProviderOptions | undefined): void {
  const refuse = (words: string): never => {
    throw wrongOption(words, 'fakeProvider()')
  }
  for (const key of Object.keys(options ?? {}))
    if (!KNOWN.includes(key)) refuse(unknownName(key, KNOWN))
  checkPools(options?.pools, refuse)
  for (const [key, expected] of Object.entries(VALUES)) {
    const value: unknown = options?.[key as keyof typeof VALUES]
    if (value !== undefined && !expected.isIt(value))
      refuse(`${key}: expected ${expected.words}, found ${shown(value)}`)
  }
  for (const [key, value] of Object.entries(options?.capabilities ?? {}))
    checkCapability(key, value, refuse)
}

function checkPools(pools: unknown, refuse: (words: string) => never): void {
  if (typeof pools !== 'object' || pools === null || Array.isArray(pools))
    return refuse("pools: expected member names by pool, such as { web: ['web1', 'web2'] }")
  for (const [pool, members] of Object.entries(pools as Record<string, unknown>)) {
    if (Array.isArray(members) && members.every((member) => typeof member === 'string')) continue
    refuse(`pools.${pool}: expected a list of member names, such as ['web1', 'web2']`)
  }
}

interface Expected {
  readonly words: string
  readonly isIt: (value: unknown) => boolean
}

const oneOf = (values: readonly unknown[]): Expected => ({
  words: `one of ${quotedList(values.map(String))}`,
  isIt: (value) => values.includes(value),
})
const methods = (value: unknown, names: readonly string[]): boolean =>
  missingMethods(value, names).length === 0
const TIME: Expected = {
  words: 'milliseconds, 0 or more',
  isIt: (value) => typeof value === 'number' && value >= 0 && Number.isFinite(value),
}
const FLAG: Expected = { words: 'true or false', isIt: (value) => typeof value === 'boolean' }

const VALUES = {
  clock: {
    words: 'a clock with now() and setTimeout()',
    isIt: (value) => methods(value, ['now', 'setTimeout']),
  },
  capabilities: {
    words: 'an object of capabilities',
    isIt: (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
  },
  latency: TIME,
  scopes: {
    words: "a list of names, such as ['worker']",
    isIt: (value) =>
      Array.isArray(value) && value.length > 0 && value.every((name) => typeof name === 'string'),
  },
  instance: {
    words: 'a name',
    isIt: (value) => typeof value === 'string' && value !== '',
  },
  whenNone: oneOf(['refuse', 'spill', 'all', 'unknown']),
} satisfies Partial<Record<keyof FakeProviderOptions, Expected>>

const CAPABILITIES: Readonly<Record<keyof Capabilities, Expected>> = {
  ladder: {
    words: "a list of states, such as ['ready', 'drain', 'maint']",
    isIt: (value) =>
      Array.isArray(value) && value.every((state) => ADMIN.includes(state as AdminState)),
  },
  maint: oneOf(['gentle', 'cuts', 'unknown', 'none']),
  counts: oneOf(['requests', 'connections', 'none']),
  terminate: FLAG,
  remove: FLAG,
  removal: oneOf(['keeps', 'cuts', 'refuses', 'unknown']),
  removalReloads: FLAG,
  add: FLAG,
  survivesReload: FLAG,
  countsAfterRemove: FLAG,
  freshness: TIME,
  blind: TIME,
  lateBound: TIME,
  minTimeout: TIME,
  minInterval: TIME,
}
const ADMIN: readonly AdminState[] = ['ready', 'drain', 'maint']

function checkCapability(key: string, value: unknown, refuse: (words: string) => never): void {
  if (!Object.hasOwn(CAPABILITIES, key))
    refuse(`capabilities: ${unknownName(key, Object.keys(CAPABILITIES))}`)
  const expected = CAPABILITIES[key as keyof Capabilities]
  if (value === undefined || expected.isIt(value)) return
  refuse(`capabilities.${key}: expected ${expected.words}, found ${shown(value)}`)
}

/** A word that the fake does not know would do nothing, and the test would pass. */
export function checkOneOf(subject: string, given: unknown, known: readonly string[]): void {
  if (known.includes(given as string)) return
  throw wrongOption(`expected one of ${quotedList(known)}, found ${shown(given)}`, subject)
}

/**
 * Reads the options of `fakeLease()`.
 *
 * @throws `INVALID_OPTIONS`
 */
export function readLeaseOptions(given: FakeLeaseOptions): FakeLeaseOptions {
  const subject = 'fakeLease()'
  return readGiven(subject, () => {
    const options = { ...given }
    const { clock, latency } = options as Partial<FakeLeaseOptions>
    if (!methods(clock, ['now', 'setTimeout']))
      throw wrongOption(
        'clock: expected a clock, such as fakeClock(): fakeLease({ clock })',
        subject,
      )
    const known = ['clock', 'latency']
    const unknown = Object.keys(options).find((key) => !known.includes(key))
    if (unknown !== undefined) throw wrongOption(unknownName(unknown, known), subject)
    if (latency === undefined || TIME.isIt(latency)) return options
    throw wrongOption(`latency: expected ${TIME.words}, found ${shown(latency)}`, subject)
  })
}

/** A number of requests. */
export function checkCount(subject: string, n: unknown): void {
  if (Number.isSafeInteger(n) && Number(n) >= 0) return
  throw wrongOption(`expected a whole number of requests from 0, found ${shown(n)}`, subject)
}

/** A time of the fake clock. A text would stop it for ever. */
export function checkTime(subject: string, ms: unknown): void {
  if (typeof ms === 'number' && ms >= 0) return
  throw wrongOption(`expected milliseconds, such as 60000, found ${shown(ms)}`, subject)
}

/** What is waited for. */
export function checkPromise(subject: string, given: unknown): void {
  if (typeof (Object(given) as { readonly then?: unknown }).then === 'function') return
  const called = typeof given === 'function' ? ': call it, and pass what it gives' : ''
  throw wrongOption(`expected a promise, found ${shown(given)}${called}`, subject)
}

function shown(value: unknown): string {
  if (typeof value === 'string') return `'${quote(value, 40)}'`
  if (typeof value === 'function') return 'a function'
  return typeof value === 'object' && value !== null ? 'an object' : String(value)
}
