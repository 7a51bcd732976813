import * as z from 'zod/mini'
import type { Lease, LeaseGrant } from '../fleet/lease/lease.js'
import { Unchanged } from '../fleet/lease/unchanged.js'
import type { CallContext } from '../provider/contract.js'
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
  return new KubernetesLease(api, parseOptions(schema(), options, subject))
}

/** The lease as its object shows it. */
interface Seen {
  readonly holder: string | null
  readonly ttl: number
  readonly transitions: number
  readonly fence: number
  readonly version: string
}

class KubernetesLease implements Lease {
  readonly name: string
  readonly #api: KubeApi
  readonly #options: KubernetesLeaseOptions
  readonly #path: string
  readonly #unchanged = new Unchanged()

  constructor(api: KubeApi, options: KubernetesLeaseOptions) {
    const { namespace, name } = options
    this.name = `kubernetes '${namespace}/${name}'`
    this.#api = api
    this.#options = options
    this.#path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`
  }

  async acquire(holder: string, ttl: number, ctx: CallContext): ReturnType<Lease['acquire']> {
    const found = await this.#read(ctx.signal)
    if (found?.holder === holder) {
      const { fence } = found
      const renewed = await this.renew({ holder, fence }, ttl, ctx)
      return renewed ? { granted: true, fence } : this.#heldBy(ctx.signal)
    }
    if (found !== undefined && found.holder !== null) {
      const isOver = this.#unchanged.isOver(found.version, found.ttl, ctx.clock)
      if (!isOver) return { granted: false, holder: found.holder }
    }
    const now = timeOf(new Date())
    const transitions = found === undefined ? 0 : found.transitions + 1
    const written = await this.#write(
      { ...specOf(holder, ttl, transitions), acquireTime: now, renewTime: now },
      found,
      ctx.signal,
    )
    if (written !== undefined) return { granted: true, fence: written.fence }
    return this.#heldBy(ctx.signal)
  }

  async renew(
    { holder, fence }: LeaseGrant,
    ttl: number,
    { signal }: Pick<CallContext, 'signal'>,
  ): Promise<boolean> {
    const found = await this.#read(signal)
    if (found?.holder !== holder || found.fence !== fence) return false
    const spec = { ...specOf(holder, ttl, found.transitions), renewTime: timeOf(new Date()) }
    if ((await this.#write(spec, found, signal)) !== undefined) return true
    const now = await this.#read(signal)
    return now?.holder === holder && now.fence === fence
  }

  async release({ holder, fence }: LeaseGrant, { signal }: CallContext): Promise<void> {
    const found = await this.#read(signal)
    if (found?.holder !== holder || found.fence !== fence) return
    const spec = { ...specOf('', 1_000, found.transitions), renewTime: timeOf(new Date()) }
    await this.#write(spec, found, signal)
  }

  /** Reads the object to tell whether another contender was faster or our answer was lost. */
  async #heldBy(signal: AbortSignal): ReturnType<Lease['acquire']> {
    return { granted: false, holder: (await this.#read(signal))?.holder ?? null }
  }

  /** Reads the object; undefined if there is none. */
  async #read(signal: AbortSignal): Promise<Seen | undefined> {
    const call = { what: this.#what('read'), path: `${this.#path}/${this.#options.name}` }
    const { status, object } = await this.#api.call(call, signal, [404])
    return status === 404 ? undefined : this.#seen(object)
  }

  /** Writes by compare-and-set; undefined if the object has changed, or another contender made it. */
  async #write(
    spec: Readonly<Record<string, unknown>>,
    found: Seen | undefined,
    signal: AbortSignal,
  ): Promise<Seen | undefined> {
    // A call that was given up must not acquire the lease for a contender that does not know of it.
    signal.throwIfAborted()
    const { name } = this.#options
    const metadata = { name, ...(found === undefined ? {} : { resourceVersion: found.version }) }
    const call: KubeCall = {
      what: this.#what('write'),
      method: found === undefined ? 'POST' : 'PUT',
      path: found === undefined ? this.#path : `${this.#path}/${name}`,
      body: { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec },
    }
    // 404: somebody deleted it since it was read.
    const conflicts = found === undefined ? [409] : [404, 409]
    const { status, object } = await this.#api.call(call, signal, conflicts)
    return conflicts.includes(status) ? undefined : this.#seen(object)
  }

  #what(verb: string): string {
    return `${verb} Lease ${this.#options.namespace}/${this.#options.name}`
  }

  #seen({ metadata, spec }: KubeObject): Seen {
    const { holderIdentity, leaseDurationSeconds, leaseTransitions } = (spec ?? {}) as LeaseSpec
    const created = Math.floor(Date.parse(metadata?.creationTimestamp ?? '') / 1_000)
    const transitions = leaseTransitions ?? 0
    const fence = created * MOST_TRANSITIONS + transitions + 1
    const version = metadata?.resourceVersion
    if (version === undefined || !Number.isSafeInteger(fence)) {
      const words = `${this.name}: the object is no Lease, use a name that nothing else writes to`
      throw new DrainableError('MALFORMED_REPLY', words)
    }
    const holder = holderIdentity ?? ''
    const ttl = (leaseDurationSeconds ?? 0) * 1_000
    return { holder: holder === '' ? null : holder, ttl, transitions, fence, version }
  }
}

interface LeaseSpec {
  readonly holderIdentity?: string | null
  readonly leaseDurationSeconds?: number | null
  readonly leaseTransitions?: number | null
}

/** Holders of one object before its number could reach that of a younger one: a million. */
const MOST_TRANSITIONS = 2 ** 20

function specOf(holder: string, ttl: number, transitions: number) {
  return {
    holderIdentity: holder,
    leaseDurationSeconds: Math.ceil(ttl / 1_000),
    leaseTransitions: transitions,
  }
}

/** A `MicroTime`: RFC 3339 with six digits of a second. */
function timeOf(date: Date): string {
  return date.toISOString().replace('Z', '000Z')
}
