import type { DrainableError } from '../../../provider/error.js'
import type { Assignment } from '../codec/assignment.js'
import type { Version } from '../../../kit/version.js'
import type { JsonAssignment } from '../codec/json.js'
import type { NodeReceipt } from './receipts.js'

/** An endpoint set as published to the proxies. */
export interface Published {
  readonly set: Assignment
  /** The publication number: it grows with every publication of this set, ours or another client's. */
  readonly seq: number
  /** The `version_info` that the proxies got. */
  readonly version: string
}

/** The calls that a sink can make to its provider. */
export interface SinkHost {
  /** Returns what each proxy of the list holds now; throws if none of them answers. */
  held(signal: AbortSignal): Promise<readonly HeldSets[]>
  /** Returns the admin addresses of the last look; none before the first. */
  proxies?(): readonly string[]
}

/** The sets of one proxy of the list. */
export interface HeldSets {
  readonly name: string
  /** Its sets as their owner wrote them; undefined if the proxy does not answer. */
  readonly sets: readonly JsonAssignment[] | undefined
  /** The set that feeds a cluster, by the cluster's name. */
  readonly services: ReadonlyMap<string, string>
  /** Why it does not answer. */
  readonly error: DrainableError | undefined
}

/** The load reports of one proxy. */
export interface NodeLoad {
  readonly node: string
  readonly version: Version | undefined
  /** The incarnation: with another one, counts begin anew. */
  readonly incarnation: string
  readonly connected: boolean
  /** Whether a report came in lately. */
  readonly reports: boolean
  /** Since when it is connected, or gone, on the monotonic clock. */
  readonly since: number
  /** Returns the load of a member; undefined if the report does not list the cluster, or not by endpoint. */
  of(service: string, member: string): LoadCount | undefined
  /** Returns how many of its clusters take a set, by its reports. */
  clusters(service: string): number
}

/** The load of one endpoint as one proxy reports it. */
export interface LoadCount {
  readonly active: number
  /** Requests issued since the stream began. */
  readonly arrivals: number
  /** The earliest moment the numbers can be from, on the monotonic clock. */
  readonly sampledAt: number
}

/** Load reports (LRS): counts that the proxies push. */
export interface LoadReports {
  /** Asks for reports while the provider looks; they cost 61 KB each. */
  demand(): void
  /** Returns every proxy that ever sent a report and was not dropped. */
  nodes(): readonly NodeLoad[]
  /** Calls `fn` at each report, until the returned function is called. */
  listen(fn: () => void): () => void
  /** Forgets a node whose last stream is gone. */
  drop(node: string): void
}

/** A server for load reports on its own port. Made by `loadReports()` of `drainable/envoy/grpc`. */
export interface LoadReportSource {
  /** The load that the proxies report. */
  readonly loads: LoadReports
  /** The address that it listens on; undefined before it does. */
  readonly address: { readonly host: string; readonly port: number } | undefined
  /**
   * Begins to listen.
   *
   * @param names - the endpoint sets to ask for
   */
  open(names: () => readonly string[]): Promise<void>
  /** Stops listening. The provider does it at its own close. */
  close(): Promise<void>
}

/** The proxies that take sets from a sink, and their answers. A proxy whose stream is gone is among them until it is dropped. */
export interface Subscribers {
  /** Returns the proxies' answers to a set. */
  of(cluster: string): readonly NodeReceipt[]
  /** Returns their node ids. */
  nodes(): ReadonlySet<string>
  /**
   * Returns how many processes take sets under that node id: two if a bootstrap was copied, or during a hot restart.
   *
   * @param each - how many clusters of one process take a set: each asks for it separately. @default 1
   */
  streams(node: string, each?: (set: string) => number): number
  /** Forgets one of these processes that is known to have ended. Returns whether there was one. */
  dropOne(node: string): boolean
  /** Whether that proxy is connected now. */
  isConnected(node: string): boolean
  /** Forgets a proxy that will not come back. */
  drop(node: string): void
  /** Calls `fn` at each answer, until the returned function is called. */
  listen(fn: () => void): () => void
}

/**
 * How endpoint sets reach Envoy. Made by `fileEndpoints`, `restEndpoints`, `callbackEndpoints`,
 * `observedEndpoints` and `grpcEndpoints`, and given to `envoy()`, which then owns it: one sink, one provider.
 */
export interface EndpointSink {
  /**
   * The kind of sink: `file`, `rest`, `callback`, `grpc`, or `observed`, which never publishes because another
   * control plane owns the sets.
   */
  readonly kind: string
  /** The sink's own name, such as `file:/etc/envoy/eds/web.json`. */
  readonly instance: string
  /** Starts to serve, if the sink serves. */
  open?(host: SinkHost): Promise<void>
  /** Returns every set in its present state, whichever client changed it last. */
  load(host: SinkHost, signal: AbortSignal): Promise<ReadonlyMap<string, Published>>
  /**
   * Publishes a full set to the proxies. Resolves when it is on its way; receipts report the rest. If the present set
   * is not `expected`, it publishes nothing and throws `Superseded`.
   */
  publish(set: Assignment, signal?: AbortSignal, expected?: Assignment): Promise<Published>
  /** The proxies that take sets from this sink, if it hears from them. */
  readonly subscribers?: Subscribers
  readonly loads?: LoadReports
  /** How long a publication can still be executed after it was given up, in milliseconds. */
  readonly lateBound: number
  /** Stops serving. The provider does it at its own close. */
  close(): Promise<void>
}

/**
 * Thrown by {@link EndpointSink.publish} if another writer changed the set since it was read: the provider then reads
 * and changes it again.
 */
export class Superseded extends Error {}

/**
 * Thrown by {@link EndpointSink.publish} if the publication certainly did not happen: the change is refused with its
 * error. After any other error its outcome is unknown.
 */
export class NotPublished extends Error {
  /** The original error. */
  readonly error: DrainableError
  /** @param error - the original error */
  constructor(error: DrainableError) {
    super(error.message, { cause: error })
    this.error = error
  }
}
