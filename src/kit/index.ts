/**
 * The building blocks of an adapter: the rules of a change, waits and retries on the clock of the call, HTTP, and the
 * handling of secrets. The adapters of this package use it, and your own can too: docs/adapters/your-own.md makes one
 * step by step.
 *
 * @module drainable/kit
 */
export { carefulApply } from './careful-apply.js'
export type {
  Begun,
  Cannot,
  CarefulAdapter,
  ChangeOf,
  ChangeOutcome,
  Later,
  Send,
  SeenMember,
} from './change.js'
export { about, leftBehind, refusal, thrownAbout } from './errors.js'
export type { Subject } from './errors.js'
export { HttpClient } from './http.js'
export type { HttpCall, HttpOptions, HttpReply } from './http.js'
export { assertPrivate, parseHttpUrl } from './options.js'
export { doubling, retried } from './retry.js'
export type { RetryOptions } from './retry.js'
export { readSecret, redact } from './options.js'
export { Turnstile } from './turnstile.js'
export { until } from './until.js'
export type { UntilOptions } from './until.js'
export { canonicalAddress, formatSocket } from '../provider/address.js'
export { parseOptions } from '../provider/options.js'
export type { Schema, SchemaIssue, WordlessIssue } from '../provider/options.js'
export { toDrainableError } from '../provider/error.js'
