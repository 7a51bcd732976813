// Two URL trees for the same things. In v2 the backend is a query parameter, in v3 a part of the
// path; names are always encoded, and always checked first: this API passes some characters
// through to HAProxy's command line (a blank in a backend name ends up as another command).

import { DrainableError } from '../../../provider/error.js'

/** Which URL tree is served. An API serves exactly one. */
export type Tree = 'v2' | 'v3'

const NAME = /^[A-Za-z0-9_.:-]{1,512}$/

/** What `isName` wants, for a message. */
const NAME_RULE = "letters, digits and - _ . : (and not '.' or '..', which a URL would fold)"

/**
 * Whether HAProxy would load a configuration with such a server or backend name, and this API can be
 * asked about it: HAProxy allows `.` and `..`, but in a path every URL parser folds them, and
 * `DELETE .../servers/..` is the backend.
 */
export function isName(name: string): boolean {
  return NAME.test(name) && !/^\.{1,2}$/.test(name)
}

/** What a write is made under: the version that was read, or a transaction. */
export type Under = { readonly version: number | undefined } | { readonly transaction: string }

/** Path and query of each thing, for one tree. */
export interface Paths {
  readonly processInfo: string
  /** The configuration as text. */
  readonly configRaw: string
  /** The configuration's version, for where no reply has said it. */
  readonly configVersion: string
  /** Rows of servers: of one backend, or of all. */
  stats(pool?: string): string
  servers(pool: string): string
  server(pool: string, member: string): string
  /** To write: under a version, or in a transaction. */
  configServers(pool: string, under: Under): string
  configServer(pool: string, member: string, under?: Under): string
  readonly reloads: string
  transactions(version: number): string
  transaction(id: string): string
  reload(id: string): string
}

/** Where to ask which tree it is. */
export function infoPath(tree: Tree): string {
  return `/${tree}/info`
}

/** The paths of one tree. Names must be valid (`isName`). */
export function pathsOf(tree: Tree): Paths {
  const base = `/${tree}/services/haproxy`
  const config = `${base}/configuration`
  const stats = (pool?: string): string =>
    `${base}/stats/native?type=server${pool === undefined ? '' : `&parent=${encode(pool)}`}`
  const common = {
    processInfo: `${base}/runtime/info`,
    configVersion: `${config}/version`,
    configRaw: `${config}/raw`,
    stats,
    reloads: `${base}/reloads`,
    transactions: (version: number) => `${base}/transactions?version=${version}`,
    transaction: (id: string) => `${base}/transactions/${encode(id)}`,
  }
  const reload = (id: string): string => `${base}/reloads/${encode(id)}`
  if (tree === 'v2') {
    return {
      ...common,
      servers: (pool) => `${base}/runtime/servers?backend=${encode(pool)}`,
      server: (pool, member) => `${base}/runtime/servers/${encode(member)}?backend=${encode(pool)}`,
      configServers: (pool, under) =>
        `${config}/servers?backend=${encode(pool)}${query('&', under)}`,
      configServer: (pool, member, under) =>
        `${config}/servers/${encode(member)}?backend=${encode(pool)}${query('&', under)}`,
      reload,
    }
  }
  return {
    ...common,
    servers: (pool) => `${base}/runtime/backends/${encode(pool)}/servers`,
    server: (pool, member) => `${base}/runtime/backends/${encode(pool)}/servers/${encode(member)}`,
    configServers: (pool, under) =>
      `${config}/backends/${encode(pool)}/servers${query('?', under)}`,
    configServer: (pool, member, under) =>
      `${config}/backends/${encode(pool)}/servers/${encode(member)}${query('?', under)}`,
    reload,
  }
}

function encode(name: string): string {
  if (/^\.{0,2}$/.test(name)) {
    throw new DrainableError(
      'INVALID_OPTIONS',
      `'${name}' can't be part of a path, expected ${NAME_RULE}; nothing was sent`,
      { provider: 'haproxy-dataplane' },
    )
  }
  return encodeURIComponent(name)
}

function query(lead: '?' | '&', under: Under | undefined): string {
  if (under === undefined) return ''
  if ('transaction' in under) return `${lead}transaction_id=${encode(under.transaction)}`
  return under.version === undefined ? '' : `${lead}version=${under.version}`
}
