import type { DrainableError } from '../../../provider/error.js'
import type { Assignment } from '../codec/assignment.js'
import type { Version } from '../../../kit/version.js'
import type { JsonObject } from '../../../kit/json.js'
import type { NodeReceipt } from './receipts.js'

/** An endpoint set as it was handed to the proxies. */
export interface Published {
  readonly set: Assignment
  /** Grows with every publication of this set, ours or another's. */
  readonly seq: number
  /** The `version_info` the proxies were told. */
  readonly version: string
}

/** What a sink may ask of the provider it belongs to. */
export interface SinkHost {
  /** The full sets as the proxies hold them now, as EDS JSON resources. */
  adopt(signal: AbortSignal): Promise<readonly JsonObject[]>
  /** The same for a sink that has sets of its own: those of these names may be missing, or differ. */
  recover?(own: ReadonlySet<string>, signal: AbortSignal): Promise<Recovered>
  /** What each proxy of the list holds, for a sink that only looks; throws where none of them answers. */
  held?(signal: AbortSignal): Promise<readonly HeldSets[]>
  /** The admin addresses of the last look; none before the first. */
  proxies?(): readonly string[]
}

/** What one proxy of the list holds. */
export interface HeldSets {
  readonly name: string
  /** EDS JSON resources; undefined: it does not answer. */
  readonly sets: readonly JsonObject[] | undefined
}

/** What is left in the proxies of the sets that were served before. */
export interface Recovered {
  /** Sets that can be taken over, as EDS JSON resources. */
  readonly sets: readonly JsonObject[]
  /** Members that some proxy holds as `DRAINING`, by set: of sets that can't be taken over. */
  readonly draining: ReadonlyMap<string, ReadonlySet<string>>
  /** The set that feeds a cluster, by the cluster's name. */
  readonly services: ReadonlyMap<string, string>
}

/** What load reports say of one proxy. */
export interface NodeLoad {
  readonly node: string
  readonly version: Version | undefined
  /** Another one: counts begin anew. */
  readonly incarnation: string
  readonly connected: boolean
  /** Whether a report came in lately. */
  readonly reports: boolean
  /** Monotonic: since when it is connected, or gone. */
  readonly since: number
  /** Undefined: the report does not list the cluster, or not by endpoint. */
  of(service: string, member: string): LoadCount | undefined
}

/** What one proxy reports of one endpoint. */
export interface LoadCount {
  readonly active: number
  /** Requests issued since the stream began. */
  readonly arrivals: number
  /** Monotonic: the earliest moment the numbers can be from. */
  readonly sampledAt: number
}

/** Load reports (LRS): counts that the proxies push. */
export interface LoadReports {
  /** Asks for reports while the provider looks; they cost 61 KB each. */
  demand(): void
  /** Every proxy that ever sent a report from here and was not dropped. */
  nodes(): readonly NodeLoad[]
  /** Calls `fn` at each report, until the returned function is called. */
  listen(fn: () => void): () => void
  /** Forgets a node whose last stream is gone. */
  drop(node: string): void
}

/**
 * How endpoint sets reach Envoy. Made by `fileEndpoints`, `restEndpoints`, `callbackEndpoints`,
 * `observedEndpoints` and `grpcEndpoints`, and given to `envoy()`, which then owns it: one sink, one provider.
 */
export interface EndpointSink {
  /** `file`, `rest`, `callback`, `grpc`, or `observed`: another control plane owns the sets, nothing is published. */
  readonly kind: string
  /** Which one, such as `file:/etc/envoy/eds/web.json`. */
  readonly instance: string
  /** Starts to serve, where there is something to serve. */
  open?(host: SinkHost): Promise<void>
  /** Every set as it stands now, whoever changed it last. */
  load(host: SinkHost, signal: AbortSignal): Promise<ReadonlyMap<string, Published>>
  /**
   * Hands a full set to the proxies. Resolves when it is on its way; receipts tell the rest. Where
   * another set than `expected` stands by now, nothing is published and it throws `Superseded`.
   */
  publish(set: Assignment, signal?: AbortSignal, expected?: Assignment): Promise<Published>
  /** What the proxies said, where they answer on the same way. */
  receipts?(cluster: string): readonly NodeReceipt[]
  /** Every proxy that takes sets from here, by node id, also while its stream is gone. */
  nodes?(): ReadonlySet<string>
  /**
   * How many processes take sets under that node id: two, where a bootstrap was copied, or for as long
   * as a hot restart lasts.
   *
   * @param each - how many clusters of one process take a set: each asks for it by itself. @default 1
   */
  streams?(node: string, each?: (set: string) => number): number
  /** Forgets one of them that is known to have ended. Returns whether there was one. */
  dropOne?(node: string): boolean
  /** Whether that proxy is heard of now. */
  isConnected?(node: string): boolean
  /** Forgets a proxy that is gone for good. */
  drop?(node: string): void
  /** Calls `fn` when a receipt comes in, until the returned function is called. */
  listen?(fn: () => void): () => void
  readonly loads?: LoadReports
  /** How long a publication that was given up can still be executed, in milliseconds. */
  readonly lateBound: number
  /** Stops serving. The provider does it at its own close. */
  close(): Promise<void>
}

/**
 * Thrown by {@link EndpointSink.publish} where the set was changed by another writer since it was read: it is
 * read and changed again.
 */
export class Superseded extends Error {}

/**
 * Thrown by {@link EndpointSink.publish} where the publication certainly did not happen: the change is refused
 * with the error. After any other error its outcome is unknown.
 */
export class NotPublished extends Error {
  /** What it failed with. */
  readonly error: DrainableError
  /** @param error - what it failed with */
  constructor(error: DrainableError) {
    super(error.message, { cause: error })
    this.error = error
  }
}
