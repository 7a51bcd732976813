import { EventEmitter } from 'eventemitter3'
import { mapEndpoints } from '../endpoints/map-endpoints.js'
import { TAINTS } from '../endpoints/nodes.js'
import { SERVICE_LABEL } from '../endpoints/slices.js'
import type { Clock } from '../provider/clock.js'
import type { DesiredMember } from '../provider/desired.js'
import { DrainableError, isDrainableError, wordsOf } from '../provider/error.js'
import { missingMethods, readGiven } from '../provider/options.js'
import { KubeApi, type KubeConfigLike, type KubeObject } from './api.js'
import { Feed, type FeedListener, type FeedSpec } from './feed.js'
import {
  parseFollow,
  parseServices,
  spotTaints,
  type FollowedService,
  type FollowOptions,
  type ResolvedFollow,
} from './follow-options.js'
import { KnownNodes, ServicePart } from './members.js'

/** Takes whole sets: a `Reconciler`. */
export interface SetTaker {
  /** Takes the desired members of all its pools. */
  set(desired: readonly DesiredMember[]): void
}

/** The events of a {@link ServiceFollower}. */
export interface FollowEvents {
  /** A whole set was given to the reconciler. */
  readonly set: readonly DesiredMember[]
  /**
   * Something is not as it should be: a call failed (it is tried again), a right is missing, or a Service can't work
   * as it is. Sent once, until it is well again or the words change.
   */
  readonly problem: DrainableError
  /** Whether everything is whole and watched. */
  readonly synced: boolean
}

/** The link between the Services of a cluster and a reconciler, until it is closed. */
export interface ServiceFollower extends AsyncDisposable {
  /**
   * Whether every list is whole and watched now: EndpointSlices, and Nodes if they can be read. While it is not, the
   * last set stays in force.
   */
  readonly synced: boolean
  /** Everything that is not as it should be now, in words. */
  readonly problems: readonly string[]
  /** Makes every set anew, with what {@link FollowOptions.adjust} says now. */
  refresh(): void
  /** Listens to an event. */
  on<K extends keyof FollowEvents>(event: K, fn: (event: FollowEvents[K]) => void): this
  /** Stops listening. */
  off<K extends keyof FollowEvents>(event: K, fn: (event: FollowEvents[K]) => void): this
  /** Ends it: every call of the API ends at once, and the last set stays with the reconciler. */
  close(): Promise<void>
}

const SUBJECT = 'followService()'
const EVENTS = ['set', 'problem', 'synced']
/** How long the first set waits for Nodes once the slices are whole, in milliseconds. */
const NODES_LIMIT = 30_000
/** After a set the next one waits that many times as long as it took, so sets cost a fifth of a core at most... */
const REST = 4
/** ... but no longer than this, in milliseconds. */
const MOST_REST = 100

/** More names than this make a selector that is longer than some proxies take. */
const MOST_NAMES = 50

/** A reconciler takes whole sets, so a second follower would take out what the first one put in. */
const followed = new WeakSet()

/**
 * Gives the endpoints of Services to a reconciler, as whole sets, for as long as it runs: EndpointSlices and, if the
 * account has the right, Nodes. It lists and watches by itself, with the address and credentials of your kubeconfig.
 *
 * - Nothing is given before every list is whole, so no half list takes a member out. If the API fails later, the last
 *   set stays in force.
 * - Each call has a limit: 5 s for the connection, 30 s for the answer, 30 s of silence in a watch. A failed call is
 *   tried again after 0.25 to 5 s. All of them end at once with the signal.
 * - An endpoint yields before its Node goes, see `markByNodes`. A Node that was never seen is no sign.
 * - Services are read, if the account has the right, to name those that can't work: a Service that is not there, and
 *   one whose selector was emptied, because Kubernetes then keeps its slices for ever.
 *
 * The account needs `list` and `watch` of `endpointslices` in the namespace. `nodes` and `services` are optional.
 *
 * @param loop - from `reconcile`, with every pool that is named here. One follower a loop: a set is always whole
 * @param config - a `KubeConfig` of `@kubernetes/client-node`
 * @param services - one Service, or all that belong to the loop's pools
 * @throws `INVALID_OPTIONS` at once; everything else is an event
 *
 * @example
 * ```ts
 * import { reconcile, type DrainableProvider } from 'drainable'
 * import { followService, type KubeConfigLike } from 'drainable/kubernetes'
 *
 * // const config = new KubeConfig()
 * // config.loadFromDefault()
 * export async function run(lb: DrainableProvider, config: KubeConfigLike, signal: AbortSignal) {
 *   const owns = (one: { ref: { member: string } }) => one.ref.member.startsWith('pod-')
 *   await using loop = reconcile(lb, { pools: ['web'], owns, timeout: '2m', signal })
 *   const web = { namespace: 'shop', service: 'web', port: 'http', pool: 'web' }
 *   await using follower = followService(loop, config, web, { signal })
 *   follower.on('problem', (error) => console.error(error.message))
 *   await loop.done
 * }
 * ```
 */
export function followService(
  loop: SetTaker,
  config: KubeConfigLike,
  services: FollowedService | readonly FollowedService[],
  options: FollowOptions = {},
): ServiceFollower {
  if (readGiven(`${SUBJECT}: loop`, () => missingMethods(loop, ['set'])).length > 0)
    throw new DrainableError(
      'INVALID_OPTIONS',
      `${SUBJECT}: loop: expected what reconcile() returns`,
    )
  const parsed = parseServices(services, SUBJECT)
  const resolved = parseFollow(options, SUBJECT)
  const api = new KubeApi(config, SUBJECT, { clock: resolved.clock })
  if (followed.has(loop)) {
    const words = `${SUBJECT}: loop: is followed already, name all Services in one call: a set is always whole`
    throw new DrainableError('INVALID_OPTIONS', words)
  }
  mapEndpoints([], resolved.map) // checks it
  return new Follower(loop, api, parsed, resolved)
}

class Follower implements ServiceFollower {
  readonly #loop: SetTaker
  readonly #clock: Clock
  readonly #emitter = new EventEmitter()
  readonly #stop = new AbortController()
  readonly #problems = new Map<string, DrainableError>()
  readonly #parts: readonly ServicePart[]
  /** The parts of each Service, by `namespace/name`: a Service can be in several pools. */
  readonly #byService: ReadonlyMap<string, readonly ServicePart[]>
  readonly #slices: readonly Feed[]
  readonly #services: readonly Feed[]
  readonly #nodes: Feed | undefined
  #nodesDue = false
  /** Whether the reconciler took the newest set. */
  #given = false
  #wasSynced = false
  #cancelPush: (() => void) | undefined
  #cancelWait: (() => void) | undefined
  #mayPushAt = 0
  readonly #unlisten: () => void

  constructor(
    loop: SetTaker,
    api: KubeApi,
    services: readonly FollowedService[],
    options: ResolvedFollow,
  ) {
    this.#loop = loop
    this.#clock = options.clock
    const { nodeEnd = {}, signal } = options
    const end = { taints: [...TAINTS, ...spotTaints], ...nodeEnd }
    const nodes = new KnownNodes(end) // checks it
    followed.add(loop)
    this.#parts = services.map((service) => new ServicePart(service, options, nodes))
    this.#byService = Map.groupBy(this.#parts, ({ key }) => key)
    const feed = (spec: FeedSpec, listener: Omit<FeedListener, 'failed'>): Feed => {
      const failed = (error: DrainableError | undefined): void => this.#failed(spec.what, error)
      return new Feed(api, spec, { ...listener, failed }, this.#stop.signal, options.clock)
    }
    const byNamespace = [...Map.groupBy(this.#parts, ({ service }) => service.namespace)]
    this.#slices = byNamespace.map(([namespace, parts]) => {
      const changed = (...both: readonly (KubeObject | undefined)[]): void =>
        this.#putSlice(namespace, both)
      return feed(slicesIn(namespace, namesOf(parts)), { changed, told: () => this.#schedule() })
    })
    this.#services = byNamespace.map(([namespace, parts]) => {
      const told = (): void => {
        for (const part of parts) {
          part.seeService(own.items.get(part.key) ?? null)
          this.#sayOf(part)
        }
      }
      const own: Feed = feed(servicesIn(namespace, namesOf(parts)), { told })
      return own
    })
    this.#nodes = options.nodes ? feed(NODES, this.#nodeListener(nodes)) : undefined
    const abort = (): void => void this.close()
    this.#unlisten = () => signal?.removeEventListener('abort', abort)
    if (signal?.aborted === true) abort()
    else signal?.addEventListener('abort', abort, { once: true })
  }

  get synced(): boolean {
    const isStopped = this.#stop.signal.aborted
    const hasNodes = this.#nodes === undefined || this.#nodes.synced || this.#hasNoRight
    return !isStopped && hasNodes && this.#slices.every(({ synced }) => synced)
  }

  get problems(): readonly string[] {
    return [...this.#problems.values()].map(({ message }) => message)
  }

  refresh(): void {
    for (const part of this.#parts) part.touch()
    this.#schedule()
  }

  on<K extends keyof FollowEvents>(event: K, fn: (event: FollowEvents[K]) => void): this {
    this.#emitter.on(checkEvent('on', event), fn)
    return this
  }

  off<K extends keyof FollowEvents>(event: K, fn: (event: FollowEvents[K]) => void): this {
    this.#emitter.off(checkEvent('off', event), fn)
    return this
  }

  async close(): Promise<void> {
    this.#stop.abort(new DrainableError('CONFLICT', 'the follower was closed'))
    this.#cancelPush?.()
    this.#cancelWait?.()
    this.#unlisten()
    followed.delete(this.#loop)
    const feeds = [...this.#slices, ...this.#services].map(({ done }) => done)
    await Promise.all([...feeds, this.#nodes?.done])
    this.#tellSynced()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  get #hasNoRight(): boolean {
    return this.#nodes?.error?.code === 'FORBIDDEN'
  }

  #putSlice(namespace: string, [before, after]: readonly (KubeObject | undefined)[]): void {
    for (const one of new Set([before, after])) {
      const service = one?.metadata?.labels?.[SERVICE_LABEL] ?? ''
      for (const part of this.#byService.get(`${namespace}/${service}`) ?? [])
        part.putSlice(one?.metadata?.name ?? '', one === after ? after : undefined)
    }
  }

  #nodeListener(nodes: KnownNodes): Omit<FeedListener, 'failed'> {
    let isSign = false
    return {
      changed: (before, after) => void (isSign = nodes.put(before, after) || isSign),
      told: () => {
        if (isSign) for (const part of this.#parts) part.touch()
        isSign = false
        this.#schedule()
      },
    }
  }

  #failed(key: string, error: DrainableError | undefined): void {
    this.#say(key, error)
    this.#tellSynced()
    this.#schedule() // a missing right for Nodes may be all that the first set waited for
  }

  /** Tells of a problem once, until it is well again or its words change. */
  #say(key: string, error: DrainableError | undefined): void {
    const known = this.#problems.get(key)
    if (error === undefined) this.#problems.delete(key)
    else this.#problems.set(key, error)
    if (error !== undefined && known?.message !== error.message) this.#tell('problem', error)
  }

  #sayOf(part: ServicePart): void {
    this.#say(`Service ${part.key} in ${part.service.pool}`, part.problem)
  }

  /** A listener that throws is an uncaught error of the process, and ends no watch. */
  #tell<K extends keyof FollowEvents>(event: K, value: FollowEvents[K]): void {
    queueMicrotask(() => void this.#emitter.emit(event, value))
  }

  #tellSynced(): void {
    const { synced } = this
    if (synced === this.#wasSynced) return
    this.#wasSynced = synced
    this.#tell('synced', synced)
  }

  /** One set for all that came at once, and with a rest after each. */
  #schedule(): void {
    if (this.#cancelPush !== undefined || this.#stop.signal.aborted) return
    const ms = Math.max(0, this.#mayPushAt - this.#clock.now())
    this.#cancelPush = this.#clock.setTimeout(() => {
      this.#cancelPush = undefined
      this.#push()
    }, ms)
  }

  #push(): void {
    this.#tellSynced()
    if (!this.#slices.every(({ known }) => known) || !this.#mayGoOn()) return
    const began = this.#clock.now()
    let isNews = !this.#given
    for (const part of this.#parts) {
      if (!part.bringUpToDate()) continue
      isNews = true
      this.#sayOf(part)
    }
    // A Service that could not be understood has no set yet: without it the whole would not be whole.
    if (!isNews || this.#parts.some(({ desired }) => desired === undefined)) return
    const set = this.#parts.flatMap(({ desired = [] }) => desired)
    try {
      this.#loop.set(set)
    } catch (error) {
      this.#given = false
      this.#say('set', toProblem(error))
      return
    }
    this.#given = true
    this.#say('set', undefined)
    const ended = this.#clock.now()
    this.#mayPushAt = ended + Math.min(MOST_REST, REST * (ended - began))
    this.#tell('set', set)
  }

  /** Whether the first set may be made: Nodes were read, can't be read, or took too long. */
  #mayGoOn(): boolean {
    const nodes = this.#nodes
    if (nodes === undefined || nodes.known || this.#hasNoRight || this.#nodesDue) return true
    this.#cancelWait ??= this.#clock.setTimeout(() => {
      this.#nodesDue = true
      this.#schedule()
    }, NODES_LIMIT)
    return false
  }
}

function namesOf(parts: readonly ServicePart[]): readonly string[] {
  return [...new Set(parts.map(({ service }) => service.service))]
}

function toProblem(error: unknown): DrainableError {
  if (isDrainableError(error)) return error
  return new DrainableError('INVALID_OPTIONS', `${SUBJECT}: ${wordsOf(error)}`, { cause: error })
}

function checkEvent(verb: string, event: string): string {
  if (EVENTS.includes(event)) return event
  const words = `${SUBJECT}: ${verb}(): there is no event '${event}', expected one of ${EVENTS.join(', ')}`
  throw new DrainableError('INVALID_OPTIONS', words)
}

// What is read, and the right that each read needs.

const NODES: FeedSpec = {
  what: 'Nodes',
  path: '/api/v1/nodes',
  rule: "endpoints are followed without their Nodes; to read them a ClusterRole needs { apiGroups: [''], resources: ['nodes'], verbs: ['list', 'watch'] }, or give nodes: false",
  optional: true,
}

/** The EndpointSlices of these Services: one watch a namespace. */
function slicesIn(namespace: string, names: readonly string[]): FeedSpec {
  const isShort = names.length <= MOST_NAMES
  return {
    what: `EndpointSlices in ${namespace}`,
    path: `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`,
    labelSelector: isShort ? `${SERVICE_LABEL} in (${names.join(',')})` : SERVICE_LABEL,
    rule: "a Role needs { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list', 'watch'] }",
  }
}

/** These Services themselves. */
function servicesIn(namespace: string, [name, ...more]: readonly string[]): FeedSpec {
  return {
    what: `Services in ${namespace}`,
    path: `/api/v1/namespaces/${namespace}/services`,
    // A rule of rights can name one object only for a list that is asked for like this.
    fieldSelector: more.length === 0 ? `metadata.name=${name ?? ''}` : undefined,
    rule: "a Service without a selector is not noticed; to read it a Role needs { apiGroups: [''], resources: ['services'], verbs: ['list', 'watch'] }",
    optional: true,
  }
}
