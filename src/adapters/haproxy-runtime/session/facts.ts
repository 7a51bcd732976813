import { isAtLeast, parseVersion } from '../../../kit/version.js'
import { MasterSocket, type StatsChannel } from './channel.js'
import { incarnationOf, parseEnv, parseProc, type ProcessInfo } from '../codec/info.js'
import { RuntimeSocket, type SocketLimits } from './socket.js'
import type { SocketAddress } from '../options.js'

/** What is asked once, before anything else. */
export interface Facts {
  readonly info: ProcessInfo
  /** Rights of the stats socket, where it says. */
  readonly level: string
  /** Under a master (-W)? Undefined: the socket's level does not allow to ask. */
  readonly mworker: boolean | undefined
  /** Where the master's socket is, as this process knows it. */
  readonly masterAddress: SocketAddress | undefined
  /** It is known that this process is the first one of its master: no reload has happened. */
  readonly neverReloaded: boolean
}

/**
 * Variables of the worker's environment. Only the named form of `show env`: the bare one prints the
 * whole environment, secrets too.
 *
 * HAPROXY_MWORKER_REEXEC (seen on 3.2) and HAPROXY_LOAD_SUCCESS (seen on 3.0) are set once the
 * master has executed itself anew, which it does at each reload. 2.6 says nothing of the kind.
 */
const VARIABLES = [
  'HAPROXY_MWORKER',
  'HAPROXY_MASTER_CLI',
  'HAPROXY_MWORKER_REEXEC',
  'HAPROXY_LOAD_SUCCESS',
] as const

/** One round trip. */
export async function readFacts(stats: StatsChannel, signal: AbortSignal): Promise<Facts> {
  const commands = ['show cli level', ...VARIABLES.map((name) => `show env ${name}`)]
  const { info, replies } = await stats.ask(commands, signal)
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

/** `unix@/run/m.sock`, `ipv4@127.0.0.1:9999`, as `-S` was given. */
function parseCliAddress(text: string | undefined): SocketAddress | undefined {
  const first = text?.split(/[;,]/)[0] ?? ''
  const unix = /^(?:unix@)?(\/.+)$/.exec(first)
  if (unix?.[1] !== undefined) return unix[1]
  const tcp = /^(?:ipv[46]@|tcp[46]?@)?\[?([0-9A-Fa-f.:]+?)\]?:(\d+)$/.exec(first)
  if (tcp?.[1] === undefined) return undefined
  return { host: tcp[1], port: Number(tcp[2]) }
}

/** The master at that address, if it is the one of this process. */
export async function connectMaster(
  address: SocketAddress,
  limits: SocketLimits,
  info: ProcessInfo,
  signal: AbortSignal,
): Promise<MasterSocket | undefined> {
  const socket = new RuntimeSocket(address, limits)
  const master = new MasterSocket(socket)
  try {
    const { current, old } = parseProc(await master.ask('show proc', signal))
    if (![...current, ...old].includes(info.pid)) return undefined
    let found: ProcessInfo | undefined
    await master
      .to(
        info.pid,
        () => undefined,
        (seen) => (found = seen),
      )
      .run([], signal)
    return found !== undefined && incarnationOf(found) === incarnationOf(info) ? master : undefined
  } catch (error) {
    socket.close()
    throw error
  }
}
