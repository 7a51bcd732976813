import { isAtLeast, parseVersion } from '../../../kit/version.js'
import { DrainableError } from '../../../provider/error.js'
import { type Address, parseAddress } from '../codec/address.js'
import { parseEnv, type ProcessInfo } from '../codec/info.js'
import { isUnknownCommand, malformed } from '../codec/replies.js'
import type { StatsChannel } from './channel.js'
import { MasterSocket } from './master.js'
import type { RuntimeSocket, Within } from './socket.js'

/** Facts that are read once, before anything else. */
export interface Facts {
  readonly info: ProcessInfo
  /** The level of the stats socket, if it reports it. */
  readonly level: string
  /** Whether it runs under a master (-W). Undefined if the socket's level does not allow the command. */
  readonly mworker: boolean | undefined
  /** The address of the master's socket, as known by this process. */
  readonly masterAddress: Address | undefined
  /** Whether this process is certainly the first one of its master: no reload has happened. */
  readonly neverReloaded: boolean
}

/**
 * Variables of the worker's environment. Only the named form of `show env`: the bare one prints the
 * whole environment, secrets too.
 *
 * HAPROXY_MWORKER_REEXEC (seen on 3.2) and HAPROXY_LOAD_SUCCESS (seen on 3.0) are set once the master has re-executed
 * itself, which it does at each reload. 2.6 has no such variable.
 */
const VARIABLES = [
  'HAPROXY_MWORKER',
  'HAPROXY_MASTER_CLI',
  'HAPROXY_MWORKER_REEXEC',
  'HAPROXY_LOAD_SUCCESS',
] as const

/** Reads the facts in one round trip. */
export async function readFacts(stats: StatsChannel, ctx: Within): Promise<Facts> {
  const commands = ['show cli level', ...VARIABLES.map((name) => `show env ${name}`)]
  const { info, replies } = await stats.ask(commands, ctx)
  const [level = '', ...env] = replies
  const value = (name: (typeof VARIABLES)[number]): string | undefined =>
    parseEnv(env[VARIABLES.indexOf(name)] ?? '', name)
  const refused = (env[0] ?? '').startsWith('Permission denied')
  const version = parseVersion(info.version)
  const marksReloads =
    version !== undefined &&
    (isAtLeast(version, 3, 2) || (version.major === 3 && version.minor === 0))
  return {
    info,
    level: level.trim(),
    mworker: refused ? undefined : value('HAPROXY_MWORKER') === '1',
    masterAddress: parseCliAddress(value('HAPROXY_MASTER_CLI')),
    neverReloaded:
      marksReloads &&
      value('HAPROXY_MWORKER_REEXEC') === undefined &&
      value('HAPROXY_LOAD_SUCCESS') === undefined,
  }
}

/** Parses the argument of `-S`: an address, and its options. */
function parseCliAddress(text: string | undefined): Address | undefined {
  const read = parseAddress(text?.split(/[;,]/)[0] ?? '')
  return typeof read === 'string' ? undefined : read
}

/** The error for a `socket` that does not know `show info`: it can be the master's. */
export async function whatIsIt(socket: RuntimeSocket, ctx: Within): Promise<Error> {
  const said = await new MasterSocket(socket).ask('show proc', ctx)
  if (isUnknownCommand(said)) return malformed("the reply of 'show info'", said)
  return new DrainableError(
    'INVALID_OPTIONS',
    `haproxyRuntime(): ${socket.label} is the master socket (haproxy -S): give it as 'master', and as 'socket' the 'stats socket' of the global section`,
    { provider: 'haproxy-runtime' },
  )
}
