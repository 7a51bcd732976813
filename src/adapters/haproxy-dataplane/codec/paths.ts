// Two URL trees for the same things. In v2 the backend is a query parameter, in v3 a part of the
// path; names are always encoded, and always checked first: this API passes some characters
// through to HAProxy's command line (a blank in a backend name ends up as another command).

import { DrainableError } from '../../../provider/error.js'
import { PROVIDER } from '../name.js'

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
  /** The servers of a backend, or one of them. */
  const servers = (room: string, pool: string, member?: string, under?: Under): string => {
    const one = member === undefined ? '' : `/${encode(member)}`
    return tree === 'v2'
      ? `${base}/${room}/servers${one}?backend=${encode(pool)}${query('&', under)}`
      : `${base}/${room}/backends/${encode(pool)}/servers${one}${query('?', under)}`
  }
  return {
    processInfo: `${base}/runtime/info`,
    configRaw: `${config}/raw`,
    configVersion: `${config}/version`,
    stats: (pool) =>
      `${base}/stats/native?type=server${pool === undefined ? '' : `&parent=${encode(pool)}`}`,
    servers: (pool) => servers('runtime', pool),
    server: (pool, member) => servers('runtime', pool, member),
    configServers: (pool, under) => servers('configuration', pool, undefined, under),
    configServer: (pool, member, under) => servers('configuration', pool, member, under),
    reloads: `${base}/reloads`,
    reload: (id) => `${base}/reloads/${encode(id)}`,
    transactions: (version) => `${base}/transactions?version=${version}`,
    transaction: (id) => `${base}/transactions/${encode(id)}`,
  }
}

function encode(name: string): string {
  if (/^\.{0,2}$/.test(name)) {
    throw new DrainableError(
      'INVALID_OPTIONS',
      `'${name}' can't be part of a path, expected ${NAME_RULE}; nothing was sent`,
      { provider: PROVIDER },
    )
  }
  return encodeURIComponent(name)
}

function query(lead: '?' | '&', under: Under | undefined): string {
  if (under === undefined) return ''
  if ('transaction' in under) return `${lead}transaction_id=${encode(under.transaction)}`
  return under.version === undefined ? '' : `${lead}version=${under.version}`
}
