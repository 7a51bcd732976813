import * as z from 'zod/mini'
import { DrainableError } from '../../../provider/error.js'
import { nonEmpty } from '../../../provider/option-schemas.js'
import { parseOptions } from '../../../provider/options.js'
import type { JsonAssignment } from '../codec/json.js'
import { union } from './adoption.js'
import { Publications } from './publications.js'
import type { EndpointSink, Published, SinkHost } from './sink.js'

/** Options of {@link observedEndpoints}. */
export interface ObservedEndpointsOptions {
  /**
   * The name of the fleet, if `combineProviders()` combines several.
   * @default no name: the instance is `observed`
   */
  readonly instance?: string | undefined
}

const schema = z.strictObject({ instance: z.exactOptional(nonEmpty()) })

/**
 * Makes a read-only source for the endpoint sets of a foreign control plane (Istio, Envoy Gateway, Contour, Consul,
 * go-control-plane). It reads them from the proxies themselves: from `/config_dump?include_eds` and `/clusters` of
 * each on the `admin` list.
 *
 * It never publishes: `watch()`, `select()` and the events work, whichever client drains, and changes are refused
 * with `UNSUPPORTED`. To drain too, connect your control plane with `callbackEndpoints()`.
 *
 * @example
 * ```ts
 * import { watch } from 'drainable'
 * import { envoy, observedEndpoints } from 'drainable/envoy'
 *
 * await using lb = envoy({ endpoints: observedEndpoints(), admin: ['http://10.0.0.7:9901'] })
 * await using run = watch(lb, { pool: 'web', member: '10.0.0.1:8080' })
 * run.on('idle', ({ proof }) => console.log(proof.text))
 * ```
 * @throws `INVALID_OPTIONS`
 */
export function observedEndpoints(options: ObservedEndpointsOptions = {}): EndpointSink {
  const { instance } = parseOptions(schema, options, 'observedEndpoints()')
  return new ObservedEndpoints(instance)
}

class ObservedEndpoints implements EndpointSink {
  readonly kind = 'observed'
  readonly instance: string
  readonly lateBound = 0
  /** The sets of each proxy when it was read last. A proxy that does not answer may still hold them. */
  readonly #held = new Map<string, readonly JsonAssignment[]>()
  readonly #known = new Publications<JsonAssignment>()

  constructor(instance: string | undefined) {
    this.instance = instance === undefined ? 'observed' : `observed:${instance}`
  }

  async load(host: SinkHost, signal: AbortSignal): Promise<ReadonlyMap<string, Published>> {
    const proxies = await host.held(signal)
    const listed = new Set(proxies.map(({ name }) => name))
    for (const name of this.#held.keys()) if (!listed.has(name)) this.#held.delete(name)
    for (const { name, sets } of proxies) if (sets !== undefined) this.#held.set(name, sets)
    return this.#known.replace(union([...this.#held.values()].flat()))
  }

  publish(): Promise<Published> {
    const words = 'observedEndpoints() only looks, another control plane owns the endpoints'
    return Promise.reject(
      new DrainableError('UNSUPPORTED', words, { provider: 'envoy', retryable: false }),
    )
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}
