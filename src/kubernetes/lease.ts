import * as z from 'zod/mini'
import {
  EntryLease,
  type Held,
  type LeaseEntry,
  type LeaseStore,
} from '../fleet/lease/entry-lease.js'
import type { Lease } from '../fleet/lease/lease.js'
import { DrainableError } from '../provider/error.js'
import { once, parseOptions } from '../provider/options.js'
import { KubeApi, type KubeCall, type KubeConfigLike, type KubeObject } from './api.js'
import { kubeName } from './follow-options.js'

/** Options of {@link kubernetesLease}. */
export interface KubernetesLeaseOptions {
  readonly namespace: string
  /** The name of the Lease object: all contenders of one lease give the same. */
  readonly name: string
}

const schema = once(() => z.strictObject({ namespace: kubeName(), name: kubeName() }))

/**
 * Makes a lease in a `Lease` object of Kubernetes (`coordination.k8s.io/v1`), as its own components elect their leaders.
 * The object is created by the first contender. Each write carries the `resourceVersion` that it stands on, so of several
 * contenders one wins.
 *
 * A contender takes the lease over once it has seen the object unchanged for the whole time, by its own monotonic clock;
 * the times in the object are for people. So use one lease object for all tries. `leaseDurationSeconds` holds whole
 * seconds: a lease of 1.5 s is taken over after 2 s.
 *
 * The fencing number comes from the object's `creationTimestamp` and `leaseTransitions`: it rises with each holder, also
 * after somebody has deleted the object, unless that was in the same second.
 *
 * The account needs `create` of `leases` in the namespace, and `get` and `update` of this one.
 *
 * @param config - a `KubeConfig` of `@kubernetes/client-node`
 * @throws `INVALID_OPTIONS`
 *
 * @example
 * ```ts
 * import type { Lease } from 'drainable'
 * import { kubernetesLease, type KubeConfigLike } from 'drainable/kubernetes'
 *
 * export function leaseOf(config: KubeConfigLike): Lease {
 *   return kubernetesLease(config, { namespace: 'edge', name: 'controller' })
 * }
 * ```
 */
export function kubernetesLease(config: KubeConfigLike, options: KubernetesLeaseOptions): Lease {
  const subject = 'kubernetesLease()'
  const api = new KubeApi(config, subject, { kept: true })
  return new EntryLease(new KubernetesEntry(api, parseOptions(schema(), options, subject)))
}

/** The lease as its object shows it. */
interface Seen extends LeaseEntry {
  /** The `resourceVersion`. */
  readonly revision: string
  readonly transitions: number
}

class KubernetesEntry implements LeaseStore<Seen> {
  readonly name: string
  readonly #api: KubeApi
  readonly #options: KubernetesLeaseOptions
  readonly #path: string

  constructor(api: KubeApi, options: KubernetesLeaseOptions) {
    const { namespace, name } = options
    this.name = `kubernetes '${namespace}/${name}'`
    this.#api = api
    this.#options = options
    this.#path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`
  }

  /** Reads the object; undefined if there is none. */
  async read(signal: AbortSignal): Promise<Seen | undefined> {
    const call = { what: this.#what('read'), path: `${this.#path}/${this.#options.name}` }
    const { status, object } = await this.#api.call(call, signal, [404])
    return status === 404 ? undefined : this.#seen(object)
  }

  async write(
    { holder, ttl, isNew }: Held,
    found: Seen | undefined,
    signal: AbortSignal,
  ): Promise<number | undefined> {
    const { name } = this.#options
    const metadata = { name, ...(found === undefined ? {} : { resourceVersion: found.revision }) }
    const before = found?.transitions ?? -1
    const now = timeOf(new Date())
    const spec = {
      holderIdentity: holder ?? '',
      // At least one, also of a lease that is released.
      leaseDurationSeconds: Math.max(1, Math.ceil(ttl / 1_000)),
      leaseTransitions: isNew ? before + 1 : before,
      ...(isNew ? { acquireTime: now } : {}),
      renewTime: now,
    }
    const call: KubeCall = {
      what: this.#what('write'),
      method: found === undefined ? 'POST' : 'PUT',
      path: found === undefined ? this.#path : `${this.#path}/${name}`,
      body: { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec },
    }
    // 404: somebody deleted it since it was read.
    const conflicts = found === undefined ? [409] : [404, 409]
    const { status, object } = await this.#api.call(call, signal, conflicts)
    return conflicts.includes(status) ? undefined : this.#seen(object).fence
  }

  #what(verb: string): string {
    return `${verb} Lease ${this.#options.namespace}/${this.#options.name}`
  }

  #seen({ metadata, spec }: KubeObject): Seen {
    const { holderIdentity, leaseDurationSeconds, leaseTransitions } = (spec ?? {}) as LeaseSpec
    const created = Math.floor(Date.parse(metadata?.creationTimestamp ?? '') / 1_000)
    const transitions = leaseTransitions ?? 0
    const fence = created * MOST_TRANSITIONS + transitions + 1
    const revision = metadata?.resourceVersion
    if (revision === undefined || !Number.isSafeInteger(fence)) {
      const words = `${this.name}: the object is no Lease, use a name that nothing else writes to`
      throw new DrainableError('MALFORMED_REPLY', words)
    }
    const holder = holderIdentity ?? ''
    const ttl = (leaseDurationSeconds ?? 0) * 1_000
    return { holder: holder === '' ? null : holder, ttl, transitions, fence, revision }
  }
}

interface LeaseSpec {
  readonly holderIdentity?: string | null
  readonly leaseDurationSeconds?: number | null
  readonly leaseTransitions?: number | null
}

/** Holders of one object before its number could reach that of a younger one: a million. */
const MOST_TRANSITIONS = 2 ** 20

/** A `MicroTime`: RFC 3339 with six digits of a second. */
function timeOf(date: Date): string {
  return date.toISOString().replace('Z', '000Z')
}
