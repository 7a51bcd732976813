import { until } from '../../../kit/until.js'
import { isAtLeast, parseVersion } from '../../../kit/version.js'
import type { CallContext } from '../../../provider/contract.js'
import { DrainableError, isDrainableError } from '../../../provider/error.js'
import { type Address, parseAddress } from '../codec/address.js'
import {
  incarnationOf,
  isUnknownCommand,
  isWorkerGone,
  malformed,
  parseEnv,
  parseProc,
  type ProcessInfo,
  ReplySplitter,
  splitReplies,
} from '../codec/replies.js'
import type { Settings } from '../options.js'
import { type Channel, type StatsChannel, together, toLines, WorkerGone } from './channel.js'
import { RuntimeSocket, type SocketLimits, type Within } from './socket.js'
import { PROVIDER } from '../name.js'

/** How long either process can answer while a reload hands the socket over, ms. */
export const HAND_OVER = 1_000
export const HAND_OVER_LOOK = 5
/** A younger process can be unknown to its master, ms. */
const YOUNG = 3_000
/** A master that executes itself anew (at a start, at a reload) does not listen for up to this long, ms. */
const EXECUTES = 5_000

/** The socket of the master process: it passes commands on to any worker, old ones too. */
export class MasterSocket {
  readonly socket: RuntimeSocket

  constructor(socket: RuntimeSocket) {
    this.socket = socket
  }

  /** Sends one command to the master itself, with `quit`, because the master does not close by itself. */
  async ask(command: string, ctx: Within): Promise<string> {
    const text = await this.socket.exchange(`${command};quit`, ctx)
    return splitReplies(text, 1)[0] ?? ''
  }

  /** Returns a channel to that worker; with an incarnation, only to that one, even if pids repeat. */
  to(pid: number, incarnation: string | undefined): Channel {
    return {
      run: async (commands, ctx) => {
        const said: string[][] = []
        for (const line of toLines(commands)) said.push(await this.#line(pid, line, ctx))
        return together(said, incarnation, () => new WorkerGone())
      },
    }
  }

  /** `@!<pid>` alone sends the rest of the line to that worker; its `quit` ends the connection. */
  async #line(pid: number, commands: readonly string[], ctx: Within): Promise<string[]> {
    const splitter = new ReplySplitter()
    let taken = 0
    let count = 0
    const text = await this.socket.exchange(
      [`@!${pid}`, ...commands, 'quit'].join(';'),
      ctx,
      (all) => {
        // 3.x does not close after this reply, whatever follows on the line.
        if (isWorkerGone(all)) return true
        count += splitter.push(all.slice(taken)).length
        taken = all.length
        return count >= commands.length
      },
    )
    if (isWorkerGone(text)) throw new WorkerGone()
    return splitReplies(text, commands.length)
  }
}

/** The process whose master is wanted. */
interface Worker {
  readonly settings: Settings
  readonly stats: StatsChannel
  readonly label: string
}

/**
 * Connects to a master: a given one must be the right one; a discovered one is used only if it is.
 *
 * @returns undefined if a discovered one is not the right one, or can't be reached
 */
export async function findMaster(
  address: Address,
  { settings, stats, label }: Worker,
  ctx: CallContext,
): Promise<MasterSocket | undefined> {
  let failure: unknown
  let moved = false as boolean // set in a closure, which the compiler does not see
  const from = ctx.clock.now()
  const found = await until(ctx, { every: HAND_OVER_LOOK, within: EXECUTES }, async () => {
    const patient = ctx.clock.now() - from < HAND_OVER
    failure = undefined
    try {
      const { info } = await stats.ask([], ctx)
      const master = await connectMaster(address, settings, info, ctx)
      if (typeof master !== 'string') return master
      // If there was a reload between the two questions, they prove nothing, however long they took.
      const { info: then } = await stats.ask([], ctx)
      moved = master === 'gone' || incarnationOf(then) !== incarnationOf(info)
      // A worker serves its socket before its master lists it: on a loaded machine long before.
      moved ||= then.lived < YOUNG
      return moved || patient ? undefined : 'another'
    } catch (error) {
      if (ctx.signal.aborted || !isDrainableError(error)) throw error
      const refused = (error.cause as NodeJS.ErrnoException | undefined)?.code === 'ECONNREFUSED'
      failure = error
      // The stats socket has just answered, so HAProxy is there.
      return refused || (error.code === 'CONNECTION_LOST' && patient) ? undefined : 'failed'
    }
  })
  if (typeof found === 'object') return found
  const data = { provider: PROVIDER }
  if (failure === undefined && moved) {
    const words = `${label} is being reloaded or has just started, so it can't be told yet whether the master at ${address.label} is its own`
    throw new DrainableError('CONFLICT', words, data)
  }
  if (settings.master === undefined) return undefined
  const words = `haproxyRuntime(): the master given is not the one of the process that serves ${label}: its 'show proc' does not list that process`
  throw failure ?? new DrainableError('INVALID_OPTIONS', words, data)
}

/**
 * Connects to the master at that address, if it is the master of this process.
 *
 * @returns `another` if it does not know the process, `gone` if the process ended before the master was asked
 * @throws `INVALID_OPTIONS` if it is not a master socket
 */
async function connectMaster(
  address: Address,
  limits: SocketLimits,
  info: ProcessInfo,
  ctx: Within,
): Promise<MasterSocket | 'another' | 'gone'> {
  const socket = new RuntimeSocket(address, limits, { kind: 'master' })
  const master = new MasterSocket(socket)
  try {
    const said = await master.ask('show proc', ctx)
    if (isUnknownCommand(said)) {
      const words = `haproxyRuntime(): ${address.label} is not a master socket, it does not know 'show proc': expected in 'master' the path given to haproxy -S`
      throw new DrainableError('INVALID_OPTIONS', words, { provider: PROVIDER })
    }
    const { current, old } = parseProc(said)
    if (![...current, ...old].includes(info.pid)) return 'another'
    const { info: found } = await master.to(info.pid, undefined).run([], ctx)
    return incarnationOf(found) === incarnationOf(info) ? master : 'another'
  } catch (error) {
    socket.close()
    if (error instanceof WorkerGone) return 'gone'
    throw error
  }
}

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
    { provider: PROVIDER },
  )
}
