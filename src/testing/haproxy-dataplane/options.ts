import type { OptionKind } from '../check-options.js'
import type { Clock } from '../../provider/clock.js'
import type { MemberRef } from '../../provider/contract.js'
import type { HttpFake, HttpFakeFailure } from '../http/request.js'
import type { FakeTls } from '../http/tls.js'
import type { FrontOptions } from './socket-haproxy.js'

/** A server of the HAProxy in memory. */
export interface FakeServer {
  readonly name: string
  /** @default 127.0.0.1 */
  readonly address?: string
  /** @default 8001, 8002 and so on */
  readonly port?: number
  /** @default 1 */
  readonly weight?: number
  /** Requests at once; further ones are queued. @default no limit */
  readonly maxconn?: number
  readonly backup?: boolean
  /** Health checks that always pass, one each second. @default false */
  readonly check?: boolean
  /** `on-marked-down shutdown-sessions`: maint cuts. @default false */
  readonly cutsWhenDown?: boolean
  /** `backend/server` whose state it follows. */
  readonly track?: string
}

/** What goes wrong. A `status` says 500 unless told otherwise. */
export interface FakeFailure extends HttpFakeFailure {
  /** Of `status`: the words of the API's error. */
  readonly message?: string
}

/** How {@link startFake} starts. */
export interface FakeOptions {
  /** Backends and their servers. @default one backend `web` with `web1` and `web2` */
  readonly pools?: Readonly<Record<string, readonly (string | FakeServer)[]>>
  /**
   * A whole configuration in place of `pools`: global, defaults, frontend and backend sections. A server's name is
   * resolved to 127.0.0.1.
   */
  readonly config?: string
  /** Stands in front of a real HAProxy in place of one in memory. */
  readonly front?: FrontOptions
  /** Of the API: `2.9`, `3.0`, `3.2`, `3.4`, or a full one. @default 3.2 */
  readonly version?: string
  /** @default 0, any free one */
  readonly port?: number
  /** @default 127.0.0.1 */
  readonly host?: string
  /** HTTPS, with a certificate of its own (`true`) or with this one. @default false */
  readonly tls?: FakeTls
  /** @default admin */
  readonly username?: string
  /** @default secret */
  readonly password?: string
  /** Milliseconds for which reloads are gathered; the real API's default is 5 s. `Infinity`: until {@link DataplaneFake.advanceReload}. @default 200 */
  readonly reloadDelay?: number
  /** Milliseconds from the signal of a reload to the new process; 2.x only, where a sent signal is a reload that succeeded. `Infinity` as for `reloadDelay`. @default 60 */
  readonly startup?: number
  /** @default 20 */
  readonly maxTransactions?: number
  /** Version of the configuration at the start. @default 1 */
  readonly configVersion?: number
  /** How long the HAProxy in memory has run, in seconds. @default 0 */
  readonly uptime?: number
  /** Milliseconds before every answer. @default 0 */
  readonly latency?: number
  /**
   * Milliseconds that a call of the statistics takes for each server of the process, whatever it asks for: 0.17 to 0.3
   * over the real API. @default 0
   */
  readonly statsCost?: number
  /** The clock of both: a test can let it run faster than the real one. @default the real one */
  readonly clock?: Pick<Clock, 'setTimeout'>
}

/** Every option by its name. */
export const KNOWN_OPTIONS: Readonly<Record<keyof FakeOptions, OptionKind>> = {
  pools: 'pools',
  config: 'string',
  front: 'object',
  version: 'string',
  port: 'number',
  host: 'string',
  tls: 'any',
  username: 'string',
  password: 'string',
  reloadDelay: 'number',
  startup: 'number',
  maxTransactions: 'number',
  configVersion: 'number',
  uptime: 'number',
  latency: 'number',
  statsCost: 'number',
  clock: 'object',
}

/** A running fake. */
export interface DataplaneFake extends HttpFake<FakeFailure> {
  readonly username: string
  /** What the API expects now. */
  readonly password: string
  /** The certificate to trust, PEM; empty over plain HTTP. */
  readonly ca: string
  /** Its SHA-256 fingerprint; empty over plain HTTP. */
  readonly fingerprint256: string
  /** The configuration file's text. */
  readonly config: string
  /** Puts a request in flight on a server; the returned function ends it. Not in front of a real HAProxy: use real connections there. */
  occupy(ref: MemberRef): Promise<() => Promise<void>>
  /** Puts a request into a server's queue; the returned function takes it out. */
  queue(ref: MemberRef): Promise<() => Promise<void>>
  /** Sends a line to HAProxy's socket: for states that have no name here. */
  run(line: string): Promise<string>
  /** Sets bits of a server's admin mask, such as 0x20 for an unresolved name. */
  setMask(ref: MemberRef, mask: number | ((now: number) => number)): void
  /** Counts a retry in turn-around: HAProxy's `wretr`. */
  retry(ref: MemberRef): void
  /** HAProxy reads its configuration again: states, counts and servers added at run time are lost. */
  reload(): Promise<void>
  /** The reload under way makes one step: what was gathered is reloaded; in 2.x, then the new process answers. Does nothing where none is. */
  advanceReload(): Promise<void>
  /** The next reload is refused with this complaint. */
  refuseReload(complaint: string): void
  /** HAProxy can't be reached any more, or can be again. */
  setDown(down: boolean): void
  /** HAProxy accepts and does not answer; returns how to wake it: what was sent meanwhile is then executed. */
  freeze(): () => void
  /** Pretends that the HAProxy process is that old. */
  age(seconds: number): void
  /** From now on the API expects this password. */
  setPassword(password: string): void
  /** The API starts again on its port, for some milliseconds nothing listens. */
  restart(downFor?: number): Promise<void>
}
