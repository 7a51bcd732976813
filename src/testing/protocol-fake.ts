import type { AdminState, MemberRef } from '../provider/contract.js'

/** What goes wrong: requests whose line matches, every one without `match`. */
export interface ProtocolFailure {
  /** Matched against {@link ProtocolRequest.line}. @default every request */
  readonly match?: RegExp
  /**
   * Nothing of it is carried out, `execute` aside.
   *
   * - `status`: answered with an error in the product's own words
   * - `refuse`: nothing listens, and what is open is cut. With `match`, `times` or `skip`, where the request has
   *   to be read first: its connection is cut
   * - `silent`: never answered; the connection stays open
   * - `reset`: the connection is cut without an answer
   * - `garbage`: answered with something that the product never says
   * - `cut`: the first half of the true answer, then the end of the connection; what was asked for is carried out
   */
  readonly how: 'status' | 'refuse' | 'silent' | 'reset' | 'garbage' | 'cut'
  /** How many requests. @default all, until it is ended */
  readonly times?: number
  /** How many of the requests that match go well before. @default 0 */
  readonly skip?: number
  /** The request is carried out all the same: the client can't know. @default false */
  readonly execute?: boolean
}

/** One request, as it came. */
export interface ProtocolRequest {
  /** All of it in one line: the command, or method, path and query. */
  readonly line: string
}

/**
 * What every protocol fake has. Each adds what its product has besides, under the product's own word.
 *
 * What begins something returns the function that ends it; to call that again does nothing.
 */
export interface ProtocolFake<
  Failure extends ProtocolFailure = ProtocolFailure,
  Request extends ProtocolRequest = ProtocolRequest,
> extends AsyncDisposable {
  /** Every request so far, oldest first. */
  readonly requests: readonly Request[]
  /** Connections that are open at present. */
  readonly sockets: number
  /** Puts work in flight on a member, with no client behind it; the returned function ends it. */
  occupy(ref: MemberRef): Promise<() => Promise<void>>
  /** Changes a member as another client would; `gone` takes it out of its pool. */
  setBehind(ref: MemberRef, to: AdminState | 'gone'): Promise<void>
  /** Lets requests go wrong from now on; the returned function ends that. Of two that match, the older one counts. */
  fail(what: Failure): () => Promise<void>
  /** The product starts again at its address: what it kept in memory only is gone. */
  restart(): Promise<void>
  /** Ends everything: no socket, timer or file stays. */
  close(): Promise<void>
}
