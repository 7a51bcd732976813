import type { OptionKind } from '../check-options.js'
import type { HttpFakeFailure, HttpFakeRequest } from '../http/request.js'
import type { Clock } from '../../provider/clock.js'
import type { FakeTls } from '../http/tls.js'
import type { FakePoolOptions } from './device/config.js'

/** Releases the fake knows the shapes of. */
export type BigipVersion = '13.1' | '15.1' | '17.1' | '17.5' | '21.0'

/** How the fake is set up; every field has a default. */
export interface FakeOptions {
  /** Pools and their members. Default: `web` with `10.0.0.1:80` and `10.0.0.2:80`. */
  readonly pools?: Readonly<Record<string, FakePoolOptions>>
  /** Properties of pools that differ from the defaults, such as `{ web: { serviceDownAction: 'reset' } }`. */
  readonly poolProps?: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  /** Virtual servers: the pool they send to, their profiles, their persistence. */
  readonly virtuals?: Readonly<Record<string, FakeVirtualOptions>>
  /** Port to listen on; 0 takes a free one. Default 0. Each further unit takes the next port. */
  readonly port?: number
  /** Address to listen on. Default `127.0.0.1`. */
  readonly host?: string
  /** HTTPS with a certificate made at start, or with the one given; `false` serves plain HTTP. Default `true`. */
  readonly tls?: FakeTls
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
  /** The clock of `latency`: a test can let it run faster than the real one. Default: the real one. */
  readonly clock?: Pick<Clock, 'setTimeout'>
  /** How many units the device group has, 1 to 8; all but the first are standby. Default: two with `pair`, else one. */
  readonly units?: number
  /**
   * How the units of the group go together; `true` makes two. They are in the device group `dg1` unless named. With
   * `bothActive` each passes the traffic of a traffic group of its own. Default: one unit.
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
  /** Changes of what an FQDN template made, members and nodes, are refused. Default `false`. */
  readonly ephemeralsRefuse?: boolean
  /** What `DELETE .../persist-records` does: `nothing` is answered with success. Default `works`. */
  readonly persistDelete?: 'works' | 'nothing'
  /**
   * Whether `GET .../ltm/node/<node>/stats` and `GET .../ltm/pool/members/stats` are there. Default `true`.
   */
  readonly nodeStats?: boolean
  readonly allStats?: boolean
  /**
   * Whether `DELETE /mgmt/tm/sys/connection` works; `nothing`: it is answered with success and cuts nothing.
   * Default `true`.
   */
  readonly connectionDelete?: boolean | 'nothing'
}

/** Every option by its name. */
export const KNOWN_OPTIONS: Readonly<Record<keyof FakeOptions, OptionKind>> = {
  pools: 'pools',
  poolProps: 'object',
  virtuals: 'object',
  port: 'number',
  host: 'string',
  tls: 'any',
  username: 'string',
  password: 'string',
  version: 'string',
  role: 'string',
  tokenTimeout: 'number',
  maxTokens: 'number',
  lockAfter: 'number',
  loginNeedsBasic: 'boolean',
  clockSkew: 'number',
  statsLag: 'number',
  checkDelay: 'number',
  latency: 'number',
  clock: 'object',
  ephemeralsRefuse: 'boolean',
  persistDelete: 'string',
  nodeStats: 'boolean',
  allStats: 'boolean',
  units: 'number',
  pair: 'any',
  fqdnInherits: 'boolean',
  connectionDelete: 'any',
}

/** A virtual server in the options of the fake. */
export interface FakeVirtualOptions {
  readonly pool: string
  /** Has a OneConnect profile. Default `false`. */
  readonly oneConnect?: boolean
  /** Name of its persistence profile, such as `cookie` or `source_addr`. */
  readonly persist?: string
}

/** One request as it came. */
export interface FakeRequest extends HttpFakeRequest {
  /** Name of the unit that was asked. */
  readonly unit: string
  readonly auth: 'token' | 'basic' | 'none'
}

/** What goes wrong. A `status` says 503 unless told otherwise. */
export interface FakeFailure extends HttpFakeFailure {
  /** Only on that unit. Default: on all. */
  readonly unit?: string
}
