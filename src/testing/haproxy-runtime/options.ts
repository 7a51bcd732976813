import { checkOptions, wrongOption, type OptionKind } from '../check-options.js'
import type { ProtocolFailure, ProtocolRequest } from '../protocol-fake.js'

/** The versions that the fake knows: each stands for its series. */
export type Series = '2.6' | '3.0' | '3.2'

/** What a connection to a socket may do. */
export type Level = 'user' | 'operator' | 'admin'

/** One server of a backend. A bare name gets an address of its own and is never connected to. */
export interface FakeServer {
  readonly name: string
  /** Default `127.0.0.1`. */
  readonly address?: string
  /** Default: one of its own, from 8001 on. */
  readonly port?: number
  /** Where the data plane really connects to, where that is not the address: `host:port`, or a port of 127.0.0.1. */
  readonly to?: string | number
  /** Default 1. */
  readonly weight?: number
  /** Requests at once; further ones are queued. Default: no limit. */
  readonly maxconn?: number
  /** Serves only when no other server does. */
  readonly backup?: boolean
  /** Begins in maint, as by the keyword `disabled`. */
  readonly disabled?: boolean
  /**
   * Health checks: a TCP connect where the server has an address or `to` of its own, else they pass
   * until `setHealth` says otherwise. Times in milliseconds. Default: not checked.
   */
  readonly check?:
    boolean | { readonly inter?: number; readonly rise?: number; readonly fall?: number }
  /** Follows the state of another server: `backend/server`. */
  readonly track?: string
  /** As by `on-marked-down shutdown-sessions`: maint cuts. */
  readonly cutOnDown?: boolean
}

/** A way in for real traffic. */
export interface FakeFrontend {
  /** The backend it sends to. Default: the one of its own name. */
  readonly pool?: string
  /** Default 0: any free port, told by `HaproxyFake.ports`. */
  readonly port?: number
  /** Default `http`. */
  readonly mode?: 'http' | 'tcp'
  /** Keeps a client on its server by a cookie of this name (`http` only). Drained servers still get its clients. */
  readonly cookie?: string
}

/** What {@link startFake} starts. */
export interface FakeOptions {
  /** Servers by backend. Default `{ web: ['web1', 'web2'] }`. */
  readonly pools?: Readonly<Record<string, readonly (string | FakeServer)[]>>
  /** Ways in for real traffic, by name. Default: none; `HaproxyFake.occupy` needs none. */
  readonly frontends?: Readonly<Record<string, FakeFrontend>>
  /** Which version it is in words, columns and framing. Default `3.2`. */
  readonly version?: Series
  /** Path of the stats socket. Default: one in a temporary folder, removed at the end. */
  readonly path?: string
  /** Listen on TCP instead, on this port of 127.0.0.1 (0: any). Default on Windows. */
  readonly port?: number
  /** As by `level` of the stats socket. Default `admin`. */
  readonly level?: Level
  /** A master socket too, as by `-W -S`: `HaproxyFake.master` is its path. Default false. */
  readonly master?: boolean
  /** As by `stats maxconn`: connections beyond get no answer until one ends. Default 10. */
  readonly maxconn?: number
  /** As by `stats timeout`: a silent connection is closed after that many milliseconds. Default 10,000. */
  readonly timeout?: number
  /** As by a server-state file that is written before a reload: states survive. Default false. */
  readonly keepsState?: boolean
  /** As by `hard-stop-after`, in milliseconds: an old worker cuts what is left and ends. Default: never. */
  readonly hardStopAfter?: number
}

/** One line that the fake got on a socket. */
export interface FakeRequest extends ProtocolRequest {
  /** The whole line, without its end. */
  readonly line: string
  readonly socket: 'stats' | 'master'
  /** The process that got it. */
  readonly pid: number
}

/**
 * What goes wrong. A `status` is for one command: it is matched against each command of a line, alone, and answered by
 * `body`; everything else is for whole lines.
 */
export interface FakeFailure extends ProtocolFailure {
  /** Of `status`: HAProxy's words. @default 'Permission denied' */
  readonly body?: string
}

/** A server with every default in its place. */
export interface ServerConfig {
  readonly name: string
  readonly address: string
  readonly port: number
  readonly to: { readonly host: string; readonly port: number }
  readonly weight: number
  readonly maxconn: number | undefined
  readonly backup: boolean
  readonly disabled: boolean
  readonly check: CheckConfig | undefined
  readonly track: string | undefined
  readonly cutOnDown: boolean
}

/** How a server is checked. */
export interface CheckConfig {
  readonly inter: number
  readonly rise: number
  readonly fall: number
  /** Whether a check really connects. */
  readonly connects: boolean
}

/** A frontend with every default in its place. */
export interface FrontendConfig {
  readonly name: string
  readonly pool: string
  readonly port: number
  readonly mode: 'http' | 'tcp'
  readonly cookie: string | undefined
}

/** The whole configuration, checked. */
export interface Config {
  readonly pools: ReadonlyMap<string, readonly ServerConfig[]>
  readonly frontends: readonly FrontendConfig[]
  readonly version: Series
  readonly level: Level
  readonly master: boolean
  readonly maxconn: number
  readonly timeout: number
  readonly keepsState: boolean
  readonly hardStopAfter: number | undefined
}

const NAME = /^[A-Za-z0-9_.:-]+$/
const FIRST_PORT = 8_001
const KNOWN: Readonly<Record<keyof FakeOptions, OptionKind>> = {
  pools: 'pools',
  frontends: 'object',
  version: 'string',
  path: 'string',
  port: 'number',
  level: 'string',
  master: 'boolean',
  maxconn: 'number',
  timeout: 'number',
  keepsState: 'boolean',
  hardStopAfter: 'number',
}

/** Checks the options as HAProxy checks a configuration: what it would not load is an error here. */
export function readConfig(options: FakeOptions): Config {
  checkOptions(options, KNOWN)
  const { pools = { web: ['web1', 'web2'] }, version = '3.2', level = 'admin' } = options
  if (!['2.6', '3.0', '3.2'].includes(version))
    throw wrongOption(`version is '${version}', not 2.6, 3.0 or 3.2`)
  if (!['user', 'operator', 'admin'].includes(level)) throw wrongOption(`level is '${level}'`)
  let port = FIRST_PORT
  const backends = new Map<string, readonly ServerConfig[]>()
  for (const [pool, servers] of Object.entries(pools)) {
    checkName(pool, 'backend')
    backends.set(
      pool,
      servers.map((server) => readServer(server, port++)),
    )
  }
  const frontends = Object.entries(options.frontends ?? {}).map(([name, frontend]) => {
    checkName(name, 'frontend')
    const { pool = name, mode = 'http', cookie } = frontend
    if (!backends.has(pool)) throw wrongOption(`frontend ${name}: unable to find backend '${pool}'`)
    return { name, pool, mode, cookie, port: frontend.port ?? 0 }
  })
  const tracked = [...backends.values()].flat().flatMap(({ track }) => track ?? [])
  for (const path of tracked) {
    const [pool = '', name] = path.split('/')
    const found = backends.get(pool)?.find((server) => server.name === name)
    if (!found) throw wrongOption(`track: no server '${path}'`)
    if (!found.check && found.track === undefined)
      throw wrongOption(`track: '${path}' does not have any checks`)
  }
  return {
    pools: backends,
    frontends,
    version,
    level,
    master: options.master ?? false,
    maxconn: options.maxconn ?? 10,
    timeout: options.timeout ?? 10_000,
    keepsState: options.keepsState ?? false,
    hardStopAfter: options.hardStopAfter,
  }
}

function readServer(given: string | FakeServer, freePort: number): ServerConfig {
  const server = typeof given === 'string' ? { name: given } : given
  checkName(server.name, 'server')
  const address = server.address ?? '127.0.0.1'
  const port = server.port ?? freePort
  const check = server.check === true ? {} : server.check === false ? undefined : server.check
  return {
    name: server.name,
    address,
    port,
    to: server.to === undefined ? { host: address, port } : readTarget(server.to),
    weight: server.weight ?? 1,
    maxconn: server.maxconn,
    backup: server.backup ?? false,
    disabled: server.disabled ?? false,
    check: check && {
      inter: check.inter ?? 2_000,
      rise: check.rise ?? 2,
      fall: check.fall ?? 3,
      connects: server.to !== undefined || server.port !== undefined,
    },
    track: server.track,
    cutOnDown: server.cutOnDown ?? false,
  }
}

function readTarget(to: string | number): { host: string; port: number } {
  if (typeof to === 'number') return { host: '127.0.0.1', port: to }
  const at = to.lastIndexOf(':')
  const port = Number(to.slice(at + 1))
  if (at < 1 || !Number.isInteger(port)) throw wrongOption(`to is '${to}', expected host:port`)
  return { host: to.slice(0, at).replace(/^\[(.*)\]$/, '$1'), port }
}

function checkName(name: string, kind: string): void {
  if (NAME.test(name)) return
  throw wrongOption(`${kind} '${name}': a name has only letters, digits and - _ . :`)
}
