import type { FakePoolOptions } from './config.js'

/** Releases the fake knows the shapes of. */
export type BigipVersion = '13.1' | '15.1' | '17.1'

/** How the fake is set up; every field has a default. */
export interface BigipFakeOptions {
  /** Pools and their members. Default: `web` with `10.0.0.1:80` and `10.0.0.2:80`. */
  readonly pools?: Readonly<Record<string, FakePoolOptions>>
  /** Properties of pools that differ from the defaults, such as `{ web: { serviceDownAction: 'reset' } }`. */
  readonly poolProps?: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  /** Virtual servers: the pool they send to, their profiles, their persistence. */
  readonly virtuals?: Readonly<Record<string, FakeVirtualOptions>>
  /** Port to listen on; 0 takes a free one. Default 0. The second unit takes the next port. */
  readonly port?: number
  /** Address to listen on. Default `127.0.0.1`. */
  readonly host?: string
  /** HTTPS with a certificate made at start, or with the one given; `false` serves plain HTTP. Default `true`. */
  readonly tls?: boolean | { readonly key: string; readonly cert: string }
  /** Default `admin`. */
  readonly username?: string
  /** Default `secret`. */
  readonly password?: string
  /** Default `15.1`. */
  readonly version?: BigipVersion
  /** What the user may do: `guest` reads, `operator` enables and disables, `admin` everything. Default `admin`. */
  readonly role?: 'guest' | 'operator' | 'admin'
  /** Seconds a token lives. Default 1200. */
  readonly tokenTimeout?: number
  /** Live tokens a user may have. Default 100. */
  readonly maxTokens?: number
  /** Wrong passwords after which the user is locked. Default: never. */
  readonly lockAfter?: number
  /** Login wants Basic credentials too, as 12.0 did. Default `false`. */
  readonly loginNeedsBasic?: boolean
  /** Milliseconds the device's clock is ahead of ours. Default 0. */
  readonly clockSkew?: number
  /** Milliseconds between two rounds of statistics. Default 0: always true. */
  readonly statsLag?: number
  /** Milliseconds a monitor takes to decide after force offline ends. Default 0: at once. */
  readonly checkDelay?: number
  /** Milliseconds before every answer. Default 0. */
  readonly latency?: number
  /**
   * Two units that fail over to each other, in the device group `dg1` unless named. With `bothActive`
   * each passes the traffic of a traffic group of its own. Default: one unit.
   */
  readonly pair?:
    | boolean
    | {
        readonly group?: string
        readonly autoSync?: boolean
        readonly bothActive?: boolean
      }
  /** Whether disabling an FQDN template reaches its ephemeral members. Default `true`. */
  readonly fqdnInherits?: boolean
  /** Whether `DELETE /mgmt/tm/sys/connection` works. Default `true`. */
  readonly connectionDelete?: boolean
}

/** A virtual server in the options of the fake. */
export interface FakeVirtualOptions {
  readonly pool: string
  /** Has a OneConnect profile. Default `false`. */
  readonly oneConnect?: boolean
  /** Name of its persistence profile, such as `cookie` or `source_addr`. */
  readonly persist?: string
}

/** One request as it came; passwords are masked. */
export interface BigipFakeRequest {
  /** Method and path in one, as `fail({ match })` sees them. */
  readonly line: string
  /** Name of the unit that was asked. */
  readonly unit: string
  readonly method: string
  /** Path and query as they stood on the wire. */
  readonly path: string
  readonly body?: unknown
  readonly auth: 'token' | 'basic' | 'none'
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** What was answered; 0 while nothing was, or never. */
  status: number
}

/** What to do wrong, and how often. */
export interface BigipFakeFailure {
  /** Matched against `METHOD path`; without it every request is meant. */
  readonly match?: RegExp
  /**
   * - `status`: answers `status` (503) with `body`, or with the device's own words for it
   * - `refuse`: takes no connection; without `match` and `times` until {@link BigipFake.recover}
   * - `silent`: never answers; `execute` tells whether it is carried out
   * - `reset`: cuts the connection; `execute` likewise
   * - `garbage`: answers 200 with something that is not JSON
   */
  readonly how: 'status' | 'refuse' | 'silent' | 'reset' | 'garbage'
  readonly times?: number
  /** How many of the requests meant go well before. Default 0. */
  readonly skip?: number
  readonly status?: number
  /** Sent as JSON, or as HTML where it is a text. */
  readonly body?: unknown
  /** Whether a `silent` or `reset` request is carried out all the same. Default `false`. */
  readonly execute?: boolean
  /** Only on that unit. Default: on all. */
  readonly unit?: string
}
