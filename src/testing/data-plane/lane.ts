/** A place for one request or connection on one member: what a balancer hands to its data plane. */
export interface Place {
  readonly name: string
  readonly host: string
  readonly port: number
  /** The work is over: the place is free. */
  end(): void
  /** What to do when the balancer cuts the work. */
  onCut(fn: () => void): void
  /** The connection was refused: the place is given back, and after a pause `again` gets it anew. False: no more tries. */
  retry(again: () => void): boolean
  /** Something to count. */
  count(what: 'connect' | 'reuse' | 'client-abort' | 'refused'): void
  /** An HTTP response with this status. */
  answered(status: number): void
  /** Bytes of the client, and for it. */
  bytes(fromClient: number, toClient: number): void
}

/** What one client connection sees of the balancer: the process that accepted it, for as long as it lives. */
export interface Lane {
  /** The process is being replaced: the connection ends after its next response. */
  readonly leaving: boolean
  /** Asks for a place, on the wanted member if it may be had; `undefined`: no member serves. Gives a way to withdraw. */
  claim(wanted: string | undefined, found: (place: Place | undefined) => void): () => void
  /** The client connection is closed. */
  close(): void
  /** Calls back when the process ends and the connection with it. */
  onEnd(fn: () => void): void
}

/** Gives every new client connection its lane. */
export type Accept = (client: object) => Lane

/** A way in for real traffic, on a port of 127.0.0.1. */
export interface Frontend {
  readonly port: number
  /** Idle connections of one member, and the end of them. */
  pooled(host: string, port: number): number
  flush(host: string, port: number): void
  close(): Promise<void>
}
