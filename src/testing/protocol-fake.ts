import type { AdminState, MemberRef } from '../provider/contract.js'

/** A failure of requests: of those whose line matches, or of all without `match`. */
export interface ProtocolFailure {
  /** Matched against {@link ProtocolRequest.line}. @default every request */
  readonly match?: RegExp
  /**
   * How requests fail. They are not carried out, unless `execute` is set.
   *
   * - `status`: answered with an error in the product's own words
   * - `refuse`: nothing listens, and open connections are cut. With `match`, `times` or `skip`, the request has to be
   *   read first: then its connection is cut
   * - `silent`: never answered; the connection stays open
   * - `reset`: the connection is cut without an answer
   * - `garbage`: answered with a text that the product never sends
   * - `cut`: the first half of the true answer, then the end of the connection; the request is carried out
   */
  readonly how: 'status' | 'refuse' | 'silent' | 'reset' | 'garbage' | 'cut'
  /** How many requests fail. @default all, until the failure is ended */
  readonly times?: number
  /** How many matching requests succeed before. @default 0 */
  readonly skip?: number
  /** Whether the request is carried out anyway, unknown to the client. @default false */
  readonly execute?: boolean
}

/** One request, as received. */
export interface ProtocolRequest {
  /** The request in one line: the command, or method, path and query. */
  readonly line: string
}

/**
 * The common part of all protocol fakes. Each adds the features of its product, under the product's own terms.
 *
 * A method that begins something returns a function that ends it; calling that function again does nothing.
 */
export interface ProtocolFake<
  Failure extends ProtocolFailure = ProtocolFailure,
  Request extends ProtocolRequest = ProtocolRequest,
> extends AsyncDisposable {
  /** Every request so far, oldest first. */
  readonly requests: readonly Request[]
  /** The number of open connections. */
  readonly sockets: number
  /** Puts work in flight on a member, without a client; the returned function ends it. */
  occupy(ref: MemberRef): Promise<() => Promise<void>>
  /** Changes a member as another client would; `gone` takes it out of its pool. */
  setBehind(ref: MemberRef, to: AdminState | 'gone'): Promise<void>
  /**
   * Makes requests fail from now on; the returned function ends that. If two failures match, the older one applies.
   */
  fail(what: Failure): () => Promise<void>
  /** Restarts the product at its address: everything that it kept only in memory is lost. */
  restart(): Promise<void>
  /** Ends the fake: no socket, timer or file stays. */
  close(): Promise<void>
}
