import { abortable } from '../../../provider/abort.js'
import * as z from 'zod/mini'
import { systemClock } from '../../../provider/clock.js'
import { DrainableError, isDrainableError, wordsOf } from '../../../provider/error.js'
import { isRefusal } from '../../../kit/errors.js'
import { nonEmpty } from '../../../provider/option-schemas.js'
import { parseOptions } from '../../../provider/options.js'
import { quote } from '../../../provider/quote.js'
import type { Assignment } from '../codec/assignment.js'
import { JsonAssignment } from '../codec/json.js'
import { setSteps } from '../codec/sets.js'
import { inTurns } from './in-turns.js'
import { Publications } from './publications.js'
import {
  NotPublished,
  Superseded,
  type EndpointSink,
  type Published,
  type SinkHost,
} from './sink.js'

/** Options of {@link callbackEndpoints}. */
export interface CallbackEndpointsOptions {
  /**
   * Returns the full endpoint sets that your control plane holds now: a list of `ClusterLoadAssignment`s in EDS JSON,
   * one of them, or a whole EDS document. Called for every look.
   */
  readonly load: () => Promise<unknown>
  /**
   * Takes one full `ClusterLoadAssignment` in EDS JSON. Resolves when your control plane has it.
   *
   * If your control plane certainly did not take it, reject with a `DrainableError` that says so (`REJECTED`,
   * `CONFLICT`, `FORBIDDEN`, `UNAUTHENTICATED`, `INVALID_OPTIONS`): the change is then refused, and retried if the
   * error is `retryable`. After any other error it is not known whether the set was taken, and the provider looks at
   * the sets until the change shows; the error becomes the cause.
   */
  readonly publish: (set: unknown) => Promise<void>
  /**
   * The name of the fleet, if a process has several: drains, floors and tickets belong to `callback:<instance>`. Give
   * the same name after a restart. If two fleets of one process share a name, the calls of the second are refused.
   * @default no name: the instance is `callback`
   */
  readonly instance?: string | undefined
}

const isFunction = (value: unknown): boolean => typeof value === 'function'
const schema = z.strictObject({
  load: z.custom<() => Promise<unknown>>(isFunction, 'expected a function'),
  publish: z.custom<(set: unknown) => Promise<void>>(isFunction, 'expected a function'),
  instance: z.exactOptional(nonEmpty()),
})

/** Sinks that looked lately, with their proxies: used only to find two fleets with the same name. */
const inUse = new Map<
  CallbackEndpoints,
  { readonly proxies: readonly string[]; readonly at: number }
>()
/** How long a sink counts as in use after a look, in milliseconds: a drain that holds a member looks more often. */
const LATELY = 60_000

/**
 * Makes a sink for endpoint sets that another control plane serves (Istio, Envoy Gateway, Contour, Consul, your own
 * controller): your functions read and publish the sets, and the proxies' admin API confirms them.
 *
 * @throws `INVALID_OPTIONS`
 */
export function callbackEndpoints(options: CallbackEndpointsOptions): EndpointSink {
  const checked = parseOptions(schema, options, 'callbackEndpoints()')
  return new CallbackEndpoints(checked)
}

class CallbackEndpoints implements EndpointSink {
  readonly kind = 'callback'
  readonly instance: string
  /** It is not known how long a foreign control plane takes. */
  readonly lateBound = 30_000
  readonly #load: () => Promise<unknown>
  readonly #publish: (set: unknown) => Promise<void>
  readonly #known = new Publications<JsonAssignment>()

  constructor({ load, publish, instance }: z.output<typeof schema>) {
    this.#load = load
    this.#publish = publish
    this.instance = instance === undefined ? 'callback' : `callback:${instance}`
  }

  async load(host: SinkHost, signal: AbortSignal): Promise<ReadonlyMap<string, Published>> {
    this.#refuseOther(host.proxies?.() ?? [])
    return await this.#read(signal)
  }

  async publish(set: Assignment, signal?: AbortSignal, expected?: Assignment): Promise<Published> {
    if (!(set instanceof JsonAssignment)) {
      throw new DrainableError('INVALID_OPTIONS', 'callbackEndpoints takes JSON sets only')
    }
    if (expected !== undefined) await this.#expect(expected, signal)
    await abortable(this.#publish(set.toJson()), signal).catch((cause: unknown) => {
      throw signal?.aborted === true ? signal.reason : unpublished(cause)
    })
    return this.#known.put(set)
  }

  close(): Promise<void> {
    inUse.delete(this)
    return Promise.resolve()
  }

  /** Two providers of one fleet share their proxies; those of two fleets have none in common. */
  #refuseOther(proxies: readonly string[]): void {
    if (proxies.length === 0) return
    const now = systemClock.now()
    for (const [sink, { proxies: others, at }] of inUse) {
      if (now - at > LATELY) inUse.delete(sink)
      if (sink === this || sink.instance !== this.instance || now - at > LATELY) continue
      if (others.some((name) => proxies.includes(name))) continue
      throw new DrainableError(
        'INVALID_OPTIONS',
        `callbackEndpoints(): the fleet of ${quote(others[0] ?? '', 120)} goes by the instance '${quote(this.instance, 80)}' too, and its drains and tickets would mix with those of ${quote(proxies[0] ?? '', 120)}: give each callbackEndpoints() an instance of its own, or the same proxies where both are one fleet`,
        { provider: 'envoy', retryable: false },
      )
    }
    inUse.set(this, { proxies, at: now })
  }

  /** Reads once more: what another writer changed since the set was read must not be overwritten. */
  async #expect(expected: Assignment, signal: AbortSignal | undefined): Promise<void> {
    const sets = await this.#read(signal).catch((error: unknown) => {
      throw isDrainableError(error) && signal?.aborted !== true ? new NotPublished(error) : error
    })
    if (sets.get(expected.cluster)?.set !== expected) throw new Superseded(expected.cluster)
  }

  async #read(signal: AbortSignal | undefined): Promise<ReadonlyMap<string, Published>> {
    const value = await abortable(this.#load(), signal).catch((cause: unknown) => {
      if (signal?.aborted === true) throw signal.reason
      if (isDrainableError(cause)) throw cause
      throw new DrainableError('UNREACHABLE', `callbackEndpoints load(): ${wordsOf(cause)}`, {
        cause,
      })
    })
    const sets = await inTurns(setSteps(value, 'callbackEndpoints load()', 'MALFORMED_REPLY'))
    return this.#known.replace(sets)
  }
}

/** What became of a publication that failed, by what the caller's function threw. */
function unpublished(cause: unknown): Error {
  if (isDrainableError(cause)) return isRefusal(cause) ? new NotPublished(cause) : cause
  if (cause instanceof NotPublished) return cause
  return new DrainableError(
    'CONNECTION_LOST',
    `callbackEndpoints publish(): ${wordsOf(cause)}; whether it was taken is not known`,
    { provider: 'envoy', cause },
  )
}
