import { EventEmitter } from 'eventemitter3'
import { mapEndpoints } from '../endpoints/map-endpoints.js'
import { TAINTS } from '../endpoints/nodes/node-end.js'
import { SERVICE_LABEL } from '../endpoints/slices/endpoint-slice.js'
import type { Clock } from '../provider/clock.js'
import type { DesiredMember } from '../provider/desired.js'
import { DrainableError, isDrainableError } from '../provider/error.js'
import { missingMethods } from '../provider/options.js'
import { wordsOf } from '../provider/thrown.js'
import { KubeApi, type KubeConfigLike, type KubeObject } from './api.js'
import { Feed, type FeedListener, type FeedSpec } from './feed.js'
import {
  parseFollow,
  parseServices,
  type FollowedService,
  type FollowOptions,
  type ResolvedFollow,
} from './follow-options.js'
import { KnownNodes } from './known-nodes.js'
import {
  NODES,
  NODE_RULE,
  SERVICE_RULE,
  servicesIn,
  SLICE_RULE,
  slicesIn,
  withRule,
} from './reads.js'
import { ServicePart } from './service-part.js'
import { spotTaints } from './spot-taints.js'

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
  if (missingMethods(loop, ['set']).length > 0)
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

/** What is read of one namespace. */
interface NamespaceFeeds {
  readonly slices: Feed
  readonly services: Feed
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
  readonly #nodes: KnownNodes
  readonly #namespaces: ReadonlyMap<string, NamespaceFeeds>
  readonly #nodeFeed: Feed | undefined
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
    this.#nodes = new KnownNodes(end) // checks it
    followed.add(loop)
    this.#parts = services.map((service) => new ServicePart(service, options, this.#nodes))
    this.#byService = Map.groupBy(this.#parts, ({ key }) => key)
    const feed = (spec: FeedSpec, listener: FeedListener): Feed =>
      new Feed(api, spec, listener, this.#stop.signal, options.clock)
    const byNamespace = Map.groupBy(services, ({ namespace }) => namespace)
    this.#namespaces = new Map(
      [...byNamespace].map(([namespace, own]) => {
        const slices = feed(slicesIn(namespace, own), this.#sliceListener(namespace))
        const objects = feed(servicesIn(namespace, own), this.#serviceListener(namespace))
        return [namespace, { slices, services: objects }]
      }),
    )
    this.#nodeFeed = options.nodes ? feed(NODES, this.#nodeListener()) : undefined
    const abort = (): void => void this.close()
    this.#unlisten = () => signal?.removeEventListener('abort', abort)
    if (signal?.aborted === true) abort()
    else signal?.addEventListener('abort', abort, { once: true })
  }

  get synced(): boolean {
    const isStopped = this.#stop.signal.aborted
    const hasNodes = this.#nodeFeed === undefined || this.#nodeFeed.synced || this.#hasNoRight
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
    const feeds = [...this.#namespaces.values()].flatMap((one) => [one.slices, one.services])
    await Promise.all([...feeds.map(({ done }) => done), this.#nodeFeed?.done])
    this.#tellSynced()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  get #hasNoRight(): boolean {
    return this.#nodeFeed?.error?.code === 'FORBIDDEN'
  }

  #sliceListener(namespace: string): FeedListener {
    const put = (before: KubeObject | undefined, after: KubeObject | undefined): void => {
      for (const one of [before, after])
        for (const part of this.#partsOf(namespace, one?.metadata?.labels?.[SERVICE_LABEL]))
          part.putSlice(one?.metadata?.name ?? '', one === after ? after : undefined)
    }
    return {
      changed: (before, after) => {
        put(before, after)
        this.#schedule()
      },
      listed: (before) => {
        for (const one of before) put(one, undefined)
        for (const one of this.#namespaces.get(namespace)?.slices.items.values() ?? [])
          put(undefined, one)
        for (const part of this.#parts) part.touch()
        this.#schedule()
      },
      failed: (error) =>
        this.#failed(`slices of ${namespace}`, error && withRule(error, SLICE_RULE)),
    }
  }

  #nodeListener(): FeedListener {
    const changed = (isSign: boolean): void => {
      if (isSign) for (const part of this.#parts) part.touch()
      this.#schedule()
    }
    return {
      changed: (before, after) => changed(this.#nodes.put(before, after)),
      listed: (before) => changed(this.#nodes.replace(before, this.#nodeFeed?.items ?? new Map())),
      failed: (error) => this.#failed('nodes', error && withRule(error, NODE_RULE)),
    }
  }

  #serviceListener(namespace: string): FeedListener {
    const see = (part: ServicePart): void => {
      const found = this.#namespaces.get(namespace)?.services.items
      part.seeService(found?.get(part.key) ?? null)
      this.#sayOf(part)
    }
    return {
      changed: (before, after) =>
        this.#partsOf(namespace, (after ?? before)?.metadata?.name).forEach(see),
      listed: () =>
        this.#parts.filter(({ service }) => service.namespace === namespace).forEach(see),
      failed: (error) =>
        this.#failed(`Services of ${namespace}`, error && withRule(error, SERVICE_RULE)),
    }
  }

  get #slices(): readonly Feed[] {
    return [...this.#namespaces.values()].map(({ slices }) => slices)
  }

  #partsOf(namespace: string, service: string | undefined): readonly ServicePart[] {
    return this.#byService.get(`${namespace}/${service ?? ''}`) ?? []
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
    const feed = this.#nodeFeed
    if (feed === undefined || feed.known || this.#hasNoRight || this.#nodesDue) return true
    this.#cancelWait ??= this.#clock.setTimeout(() => {
      this.#nodesDue = true
      this.#schedule()
    }, NODES_LIMIT)
    return false
  }
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
