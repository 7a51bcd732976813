import type { OptionKind } from '../check-options.js'
import { isIP } from 'node:net'
import type { Clock } from '../../provider/clock.js'
import type { HttpFakeFailure, HttpFakeRequest } from '../http/request.js'
import type { FakeTls } from '../http/tls.js'

/** A member of a service group, or a service: its name alone, or with all that is known of it. */
export type FakeMember =
  | string
  | {
      /** A service's name; for a group member `server:port`, or the server's name beside `port`. */
      readonly name: string
      /** Address of the server. Default: the name where it is one, else one made up. */
      readonly address?: string
      /** Default 80, or what `name` says. `*` is 65535 in NITRO. */
      readonly port?: number
      readonly weight?: number
      /** What the monitors say. Default `UP`. */
      readonly health?: 'UP' | 'DOWN' | 'UNKNOWN' | 'BUSY'
      /** Taken by fakes with a data plane; this one has none. */
      readonly to?: string
    }

/** A service group or a load balancing virtual server, with what shapes a drain of its members. */
export interface FakePool {
  readonly members: readonly FakeMember[]
  /** Default `HTTP`. */
  readonly servicetype?: string
  /** `DISABLED`: connections live on after OUT OF SERVICE. Default `ENABLED`. */
  readonly downstateflush?: 'ENABLED' | 'DISABLED'
  /**
   * `API` and `DNS` groups refuse actions on one member. In a `DNS` group members of one name and port are
   * addresses that DNS has for one server. Default `DISABLED`.
   */
  readonly autoscale?: 'DISABLED' | 'DNS' | 'POLICY' | 'CLOUD' | 'API'
  /** Of a virtual server: `DISABLED` turns persistent clients away in TROFS. Default `ENABLED`. */
  readonly trofspersistence?: 'ENABLED' | 'DISABLED'
  /** Of a virtual server: who serves when none of its own does. */
  readonly backupvserver?: string
  /** Of a virtual server: service groups that are bound to it. */
  readonly groups?: readonly string[]
}

/** The content of one partition. */
export interface FakeConfig {
  /** Service groups by name; a list is short for its members. Default: `web` with `web1:80` and `web2:80`. */
  readonly pools?: Readonly<Record<string, readonly FakeMember[] | FakePool>>
  /** Virtual servers by name, with services. Default: none. */
  readonly vservers?: Readonly<Record<string, readonly FakeMember[] | FakePool>>
}

/** How to start the stand-in for an appliance. */
export interface FakeOptions extends FakeConfig {
  /** 0 takes a free one. Default 0. */
  readonly port?: number
  /** Address to listen on. Default `127.0.0.1`. */
  readonly host?: string
  /** `false` speaks plain HTTP; a key and a certificate replace the self-signed one. Default `true`. */
  readonly tls?: FakeTls
  /** Default `admin`. */
  readonly username?: string
  /** Default `secret`. */
  readonly password?: string
  /** More users, or users with fewer rights. */
  readonly users?: Readonly<
    Record<string, { readonly password: string; readonly rights?: 'superuser' | 'read-only' }>
  >
  /** Such as `12.1`. Builds before 13.0 lack fields of the member bindings, 10.x lacks `severity` too. Default `13.1`. */
  readonly version?: string
  /** NSIP of the (first) node, by which it names itself. Default `192.0.2.240`. */
  readonly address?: string
  /** A second node that is the secondary, with an address of its own. Default `false`. */
  readonly ha?: boolean
  /** An NSIP of a cluster refuses changes; the cluster's own address takes them. Default: no cluster. */
  readonly cluster?: 'clip' | 'nsip'
  /** Partitions besides the default one. */
  readonly partitions?: Readonly<Record<string, FakeConfig>>
  /** Where the token of a login stands. Default `both`. */
  readonly tokenIn?: 'both' | 'cookie' | 'body'
  /** `false` refuses `X-NITRO-USER` with 1244. Default `true`. */
  readonly headerAuth?: boolean
  /** How an ended session is told. Default 401 and 444. */
  readonly expiry?: { readonly status: number; readonly errorcode: number }
  /** Sessions at once before 445. Default 20. */
  readonly maxSessions?: number
  /** Requests at once before 446. Default: no limit. */
  readonly maxRequests?: number
  /** `empty`: actions are answered by a body of no bytes, as old builds do. Default `done`. */
  readonly actionReply?: 'done' | 'empty'
  /** A second disable during TROFS. Default `restart`. */
  readonly secondDisable?: 'restart' | 'refuse' | 'ignore'
  /** Milliseconds between two looks of the appliance at its TROFS members. Default 1,000. */
  readonly tick?: number
  /** Milliseconds for which `stat` repeats itself, by `clock` where that tells the time. Default 0: always what is. */
  readonly statInterval?: number
  /**
   * Where members of HTTP and SSL groups have `totalrequests`: in both forms of their statistics, in their `single`
   * form alone, or `nowhere`. Default `both`.
   */
  readonly memberTotals?: 'both' | 'single' | 'nowhere'
  /** Milliseconds from an enable to the first passed check, DOWN until then. Default 0. */
  readonly checkDelay?: number
  /** Milliseconds every reply is held back. Default 0. */
  readonly latency?: number
  /** The clock of `latency` and `tick`: a test can let it run faster than the real one. Default: the real one. */
  readonly clock?: Pick<Clock, 'setTimeout'> & Partial<Pick<Clock, 'now'>>
  /** One row comes as an object where an array is usual. Default `false`. */
  readonly loneObjects?: boolean
  /**
   * What is answered for many at once: `bindings` by `?bulkbindings=yes` (since 11.1), `stats` with members
   * below each group in the list of groups, `actions` on a list in the body (`first`: of a list
   * only the first is carried out, and Done is said). Default: all of it.
   */
  readonly bulk?: {
    readonly bindings?: boolean
    readonly stats?: boolean
    readonly actions?: boolean | 'first'
  }
}

/** Every option by its name. */
export const KNOWN_OPTIONS: Readonly<Record<keyof FakeOptions, OptionKind>> = {
  pools: 'pools',
  vservers: 'pools',
  port: 'number',
  host: 'string',
  tls: 'any',
  username: 'string',
  password: 'string',
  users: 'object',
  version: 'string',
  address: 'string',
  ha: 'boolean',
  cluster: 'string',
  partitions: 'object',
  tokenIn: 'string',
  headerAuth: 'boolean',
  expiry: 'object',
  maxSessions: 'number',
  maxRequests: 'number',
  actionReply: 'string',
  secondDisable: 'string',
  tick: 'number',
  statInterval: 'number',
  memberTotals: 'string',
  checkDelay: 'number',
  latency: 'number',
  clock: 'object',
  loneObjects: 'boolean',
  bulk: 'object',
}

/** One request, as it came. */
export interface FakeRequest extends HttpFakeRequest {
  /** The address of the node that it came to. */
  readonly node: string
}

/** What goes wrong. */
export interface FakeFailure extends HttpFakeFailure {
  /** Only at the node of this address, its NSIP; default: at every address. */
  readonly node?: string
  /** Of `status`: the errorcode of NITRO's answer. Default: HTML that is none of NITRO's. */
  readonly errorcode?: number
  /** Of `status`, beside `errorcode`: its words. Default: the stock text. */
  readonly message?: string
}

/** A member as the fake holds it, whatever way it was given. */
export interface MemberSeed {
  readonly name: string
  readonly server: string
  readonly address: string
  readonly port: number
  readonly weight: number
  readonly health: 'UP' | 'DOWN' | 'UNKNOWN' | 'BUSY'
}

/** A pool given as a list or as an object, as an object. */
export function toPool(pool: readonly FakeMember[] | FakePool): FakePool {
  return Array.isArray(pool) ? { members: pool as readonly FakeMember[] } : (pool as FakePool)
}

/** `web1`, `web1:8080`, `10.0.0.1:80`, `[2001:db8::1]:80`, `2001:db8::1`, or the object form. */
export function toSeed(member: FakeMember, index: number, kind: 'member' | 'service'): MemberSeed {
  const given = typeof member === 'string' ? { name: member } : member
  const split = kind === 'member' ? splitName(given.name) : { server: given.name, port: undefined }
  const made = `192.0.2.${(index % 250) + 1}`
  const address = given.address ?? (isIP(split.server) === 0 ? made : split.server)
  return {
    name: given.name,
    server: kind === 'member' ? split.server : address,
    address,
    port: given.port ?? split.port ?? 80,
    weight: given.weight ?? 1,
    health: given.health ?? 'UP',
  }
}

/** `server:port` in its parts; the port is undefined where there is none. */
export function splitName(name: string): { server: string; port: number | undefined } {
  if (isIP(name) !== 0) return { server: name, port: undefined }
  const match = /^(.*):(\d+|\*)$/s.exec(name)
  if (!match) return { server: name, port: undefined }
  const server = (match[1] ?? '').replace(/^\[(.*)\]$/, '$1')
  return { server, port: match[2] === '*' ? 65_535 : Number(match[2]) }
}

/** Which fields a build knows. */
export interface Dialect {
  /** Since 13.0: `state`, `graceful`, `delay` and more in member bindings. */
  readonly memberFields: boolean
  /** Since 11.0. */
  readonly severity: boolean
}

export function dialectOf(version = '13.1'): Dialect {
  const major = Number.parseInt(version, 10)
  return { memberFields: !(major < 13), severity: !(major < 11) }
}
