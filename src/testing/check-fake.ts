import { unknownName } from '../provider/describe-issue.js'
import { quotedList } from '../provider/nearest.js'
import { quote } from '../provider/quote.js'
import { wrongOption } from './check-options.js'
import type { FakeProviderOptions } from './fake-provider.js'

const KNOWN = ['pools', 'clock', 'capabilities', 'latency', 'scopes', 'instance', 'whenNone']

/** A misspelt option of `fakeProvider()` would be a test of something else. */
export function checkFakeOptions(options: FakeProviderOptions | undefined): void {
  const refuse = (words: string): never => {
    throw wrongOption(words, 'fakeProvider()')
  }
  for (const key of Object.keys(options ?? {}))
    if (!KNOWN.includes(key)) refuse(unknownName(key, KNOWN))
  const pools: unknown = options?.pools
  if (typeof pools !== 'object' || pools === null || Array.isArray(pools))
    return refuse("pools: expected member names by pool, such as { web: ['web1', 'web2'] }")
  for (const [pool, members] of Object.entries(pools as Record<string, unknown>)) {
    if (Array.isArray(members) && members.every((member) => typeof member === 'string')) continue
    refuse(`pools.${pool}: expected a list of member names, such as ['web1', 'web2']`)
  }
}

/** A word that the fake does not know would do nothing, and the test would pass. */
export function checkOneOf(subject: string, given: unknown, known: readonly string[]): void {
  if (known.includes(given as string)) return
  throw wrongOption(`expected one of ${quotedList(known)}, found ${shown(given)}`, subject)
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
