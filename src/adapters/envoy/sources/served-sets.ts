import { abortable } from '../../../provider/abort.js'
import type { JsonObject } from '../../../kit/json.js'
import type { Assignment } from '../codec/assignment.js'
import { Superseded, type Published, type SinkHost } from './sink.js'

/**
 * The sets of a sink that serves them itself: given at the start, or adopted from the proxies before
 * anything is served, so that nothing is ever emptied by a management server that just came up.
 */
export class ServedSets<A extends Assignment> {
  readonly #convert: (resources: readonly JsonObject[]) => Promise<readonly A[]>
  readonly #sets = new Map<string, Published & { readonly set: A }>()
  readonly #listeners = new Set<(cluster: string) => void>()
  #seq = 0
  #loading: Promise<void> | undefined
  #loaded = false

  constructor(convert: (resources: readonly JsonObject[]) => Promise<readonly A[]>) {
    this.#convert = convert
  }

  get loaded(): boolean {
    return this.#loaded
  }

  get(cluster: string): (Published & { readonly set: A }) | undefined {
    return this.#sets.get(cluster)
  }

  all(): ReadonlyMap<string, Published> {
    return new Map(this.#sets)
  }

  /** Takes over the sets of the proxies, once; a failed attempt is repeated by the next call. */
  async adopt(host: SinkHost, signal: AbortSignal): Promise<void> {
    if (this.#loaded) return
    // Callers share it, so it heeds none of their signals; the host ends it at its close.
    if (this.#loading === undefined) {
      const whole = new AbortController().signal
      this.#loading = this.#adopt(host, whole).finally(() => (this.#loading = undefined))
      this.#loading.catch(() => undefined)
    }
    await abortable(this.#loading, signal)
  }

  /** @throws Superseded where another set than `expected` stands */
  publish(set: A, expected: Assignment | undefined): Published & { readonly set: A } {
    if (expected !== undefined && this.#sets.get(set.cluster)?.set !== expected) {
      throw new Superseded(set.cluster)
    }
    return this.put(set)
  }

  put(set: A): Published & { readonly set: A } {
    const published = { set, seq: ++this.#seq, version: set.version }
    this.#sets.set(set.cluster, published)
    this.#loaded = true
    for (const fn of this.#listeners) fn(set.cluster)
    return published
  }

  listen(fn: (cluster: string) => void): void {
    this.#listeners.add(fn)
  }

  async #adopt(host: SinkHost, signal: AbortSignal): Promise<void> {
    const sets = await this.#convert(await host.adopt(signal))
    for (const set of sets) this.put(set)
  }
}
