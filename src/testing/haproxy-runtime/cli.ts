import type { AdminState } from '../../provider/contract.js'
import type { Backend } from './backend.js'
import type { CheckConfig, Level, ServerConfig } from './options.js'
import { whyKept } from './removable.js'
import type { Server } from './server.js'
import { showInfo, VERSIONS } from './show-info.js'
import { showServersConn, showServersState } from './show-servers.js'
import { showSess } from './show-sess.js'
import { showStat } from './show-stat.js'
import type { Worker } from './worker.js'
import { waitCommand } from './wait.js'

/** What one connection to the command line has set for itself. */
export interface CliState {
  level: Level
  severity: 'none' | 'number' | 'string'
  /** Fires when the connection ends or is silent for too long: a `wait` is interrupted by it. */
  readonly ended: AbortSignal
  /** It came by the master's socket. */
  readonly viaMaster: boolean
  /** Set by `set timeout cli`, in milliseconds. */
  timeout?: number
}

/** What a command answers. A reply is followed by an empty line, but for some of 2.6. */
export interface Reply {
  readonly text: string
  readonly bare?: true
  readonly close?: true
  /** No prompt follows. */
  readonly quiet?: true
}

type Severity = 3 | 4 | 6

const SEVERITIES: Readonly<Record<Severity, string>> = { 3: 'err', 4: 'warning', 6: 'info' }
const RANK: Readonly<Record<Level, number>> = { user: 0, operator: 1, admin: 2 }
const NEED_PATH = "Require 'backend/server'.\n"
const DENIED = 'Permission denied\n'
const USAGE =
  'usage: set server <backend>/<server> addr | agent | agent-addr | agent-port | agent-send | ' +
  'check-addr | check-port | fqdn | health | ssl | state | weight\n'

interface Context {
  readonly worker: Worker
  readonly state: CliState
  readonly args: readonly string[]
}

interface Command {
  /** The words it begins with. */
  readonly words: string
  readonly level: Level
  /** Shown by `help`. */
  readonly usage: string
  readonly since?: '3.0'
  readonly run: (context: Context) => Reply | Promise<Reply>
}

const COMMANDS: readonly Command[] = [
  {
    words: 'show stat',
    level: 'user',
    usage: 'show stat [up|no-maint] [<px> <type> <sid>]',
    run: stat,
  },
  {
    words: 'show servers state',
    level: 'user',
    usage: 'show servers state [<backend>]',
    run: state,
  },
  { words: 'show servers conn', level: 'user', usage: 'show servers conn [<backend>]', run: conn },
  { words: 'show info', level: 'user', usage: 'show info', run: info },
  { words: 'show version', level: 'user', usage: 'show version', run: version },
  { words: 'show backend', level: 'user', usage: 'show backend', run: backends },
  { words: 'show cli level', level: 'user', usage: 'show cli level', run: cliLevel },
  { words: 'show sess', level: 'operator', usage: 'show sess', run: sess },
  { words: 'show env', level: 'operator', usage: 'show env [var]', run: env },
  { words: 'get weight', level: 'user', usage: 'get weight <bk>/<srv>', run: getWeight },
  { words: 'set server', level: 'admin', usage: 'set server <bk>/<srv> [opts]', run: setServer },
  { words: 'set weight', level: 'admin', usage: 'set weight <bk>/<srv>', run: setWeight },
  {
    words: 'set maxconn server',
    level: 'admin',
    usage: 'set maxconn server <bk>/<srv>',
    run: maxconn,
  },
  {
    words: 'set severity-output',
    level: 'user',
    usage: 'set severity-output [none|...]',
    run: severity,
  },
  { words: 'set timeout cli', level: 'user', usage: 'set timeout cli <delay>', run: setTimeoutCli },
  {
    words: 'enable server',
    level: 'admin',
    usage: 'enable server (DEPRECATED)',
    run: toggle('ready'),
  },
  {
    words: 'disable server',
    level: 'admin',
    usage: 'disable server (DEPRECATED)',
    run: toggle('maint'),
  },
  { words: 'enable health', level: 'admin', usage: 'enable health', run: health(true) },
  { words: 'disable health', level: 'admin', usage: 'disable health', run: health(false) },
  {
    words: 'shutdown sessions server',
    level: 'admin',
    usage: 'shutdown sessions server',
    run: cut,
  },
  { words: 'shutdown session', level: 'admin', usage: 'shutdown session [id]', run: cutOne },
  { words: 'add server', level: 'admin', usage: 'add server <bk>/<srv>', run: addServer },
  { words: 'del server', level: 'admin', usage: 'del server <bk>/<srv>', run: delServer },
  { words: 'clear counters', level: 'operator', usage: 'clear counters [all]', run: clear },
  { words: 'experimental-mode', level: 'admin', usage: 'experimental-mode [on|off]', run: silent },
  { words: 'expert-mode', level: 'admin', usage: 'expert-mode [on|off]', run: silent },
  {
    words: 'wait',
    level: 'admin',
    usage: 'wait {-h|<delay>} cond [args]',
    since: '3.0',
    run: wait,
  },
  { words: 'user', level: 'user', usage: 'user', run: lower('user') },
  { words: 'operator', level: 'user', usage: 'operator', run: lower('operator') },
  { words: 'help', level: 'user', usage: 'help [<command>]', run: help },
  {
    words: 'quit',
    level: 'user',
    usage: 'quit',
    run: () => ({ text: '', bare: true, quiet: true, close: true }),
  },
]

/** Runs one command of a line, which the caller has cut at its semicolons. */
export async function runCommand(worker: Worker, state: CliState, line: string): Promise<Reply> {
  const words = line.trim().split(/\s+/).filter(Boolean)
  const { version } = worker.config
  if (words.length === 0) {
    if (version !== '2.6') return { text: '' }
    const head = 'Unknown command. Please enter one of the following commands only:\n'
    return say(state, 6, `${head}${commandList(worker)}`)
  }
  if (version === '3.2' && words.length > 64) {
    return say(state, 3, 'Too many arguments. Commands must have at most 64 arguments.\n')
  }
  const command = COMMANDS.find(({ words: own, since }) => {
    const known = since === undefined || version !== '2.6'
    return known && own.split(' ').every((word, i) => words[i] === word)
  })
  if (!command) return unknownCommand(worker, state, words[0] ?? '')
  if (RANK[state.level] < RANK[command.level]) return say(state, 3, DENIED)
  const args = words.slice(command.words.split(' ').length)
  return command.run({ worker, state, args })
}

function unknownCommand(worker: Worker, state: CliState, word: string): Reply {
  const named = worker.config.version === '2.6' ? '' : `: '${word}'`
  const head = `Unknown command${named}, but maybe one of the following ones is a better match:\n`
  // An error to a reader, but not by its level: the product says info here too.
  return say(state, 6, `${head}${commandList(worker)}`)
}

function commandList(worker: Worker): string {
  const known = COMMANDS.filter((c) => c.since === undefined || worker.config.version !== '2.6')
  return known.map(({ usage }) => `  ${usage.padEnd(40)}: known to this fake\n`).join('')
}

/** A message, with its level in front where the connection wants that; data never has one. */
function say({ severity: wish }: CliState, level: Severity, text: string): Reply {
  if (wish === 'none') return { text }
  return { text: `[${wish === 'number' ? level : SEVERITIES[level]}]: ${text}` }
}

/** A message that 2.6 does not follow with an empty line. */
function sayBare(context: Context, level: Severity, text: string): Reply {
  const reply = say(context.state, level, text)
  return context.worker.config.version === '2.6' ? { ...reply, bare: true } : reply
}

type Found = { readonly backend: Backend; readonly server: Server } | { readonly refusal: string }

function find({ worker, args }: Context, needsLive = false): Found {
  const [, pool, name] = /^([^/]*)\/(.*)$/.exec(args[0] ?? '') ?? []
  if (pool === undefined || name === undefined) return { refusal: NEED_PATH }
  const backend = worker.backend(pool)
  if (!backend) return { refusal: 'No such backend.\n' }
  const server = backend.find(name)
  if (!server) return { refusal: 'No such server.\n' }
  // A process that is being replaced has its proxies stopped.
  if (needsLive && worker.isOld) return { refusal: 'Proxy is disabled.\n' }
  return { backend, server }
}

function silent(): Reply {
  return { text: '' }
}

function stat({ worker, state: own, args }: Context): Reply {
  const text = showStat(worker, args, worker.config.level)
  return text.startsWith('#') ? { text } : say(own, 3, text)
}

function state({ worker, state: own, args }: Context): Reply {
  const text = showServersState(worker, args[0])
  return text.startsWith('1') ? { text } : say(own, 3, text)
}

function conn({ worker, state: own, args }: Context): Reply {
  const text = showServersConn(worker, args[0])
  return text.startsWith('#') ? { text } : say(own, 3, text)
}

function info({ worker }: Context): Reply {
  return { text: showInfo(worker) }
}

function version({ worker, state: own }: Context): Reply {
  return say(own, 6, `${VERSIONS[worker.config.version].text}\n`)
}

function backends({ worker }: Context): Reply {
  return { text: `# name\n${worker.backends.map(({ name }) => `${name}\n`).join('')}` }
}

function cliLevel({ state: own }: Context): Reply {
  return { text: `${own.level}\n` }
}

function sess({ worker, args }: Context): Reply {
  return { text: showSess(worker, args) }
}

function env({ worker, state: own, args }: Context): Reply {
  const variables: Record<string, string> = {}
  if (worker.config.master) {
    variables['HAPROXY_MWORKER'] = '1'
    if (worker.config.version !== '3.2') variables['HAPROXY_MASTER_CLI'] = worker.masterAddress
  }
  const [name] = args
  const found = Object.entries(variables).filter(([key]) => name === undefined || key === name)
  if (name !== undefined && found.length === 0) return say(own, 3, 'Variable not found\n')
  return { text: found.map(([key, value]) => `${key}=${value}\n`).join('') }
}

function getWeight(context: Context): Reply {
  const found = find(context)
  if ('refusal' in found) return say(context.state, 3, found.refusal)
  const { weight, config } = found.server
  return { text: `${weight} (initial ${config.weight})\n` }
}

function setServer(context: Context): Reply {
  const { worker, state: own, args } = context
  const found = find(context, true)
  if ('refusal' in found) return say(own, 3, found.refusal)
  const { server } = found
  switch (args[1]) {
    case 'state': {
      const [, , to] = args
      if (to !== 'ready' && to !== 'drain' && to !== 'maint') {
        return say(own, 3, "'set server <srv> state' expects 'ready', 'drain' and 'maint'.\n")
      }
      worker.setState(server, to)
      return silent()
    }
    case 'weight':
      return weigh(context, server, args[2])
    case 'health':
      if (!server.config.check) {
        return say(own, 3, 'health checks are not enabled on this server.\n')
      }
      server.health =
        args[2] === 'down' ? 0 : server.config.check.rise + server.config.check.fall - 1
      return silent()
    case 'addr':
      return readdress(context, server)
    default:
      return say(own, 3, USAGE)
  }
}

function setWeight(context: Context): Reply {
  const found = find(context, true)
  if ('refusal' in found) return say(context.state, 3, found.refusal)
  return weigh(context, found.server, context.args[1])
}

function weigh(context: Context, server: Server, text: string | undefined): Reply {
  if (text === undefined) return say(context.state, 3, 'Require <weight> or <weight%>.\n')
  const [, digits, rest] = /^(\d+)(.*)$/.exec(text) ?? []
  if (digits === undefined) {
    return sayBare(context, 3, 'Empty weight string empty or preceded by garbage\n')
  }
  if (rest !== '' && rest !== '%') return sayBare(context, 3, 'Trailing garbage in weight string\n')
  const value = Number(digits)
  if (rest === '%') {
    if (value > 25_600) return say(context.state, 3, 'Relative weight must be positive.\n')
    server.weight = Math.min(256, Math.floor((server.config.weight * value) / 100))
  } else if (value > 256) {
    const refusal = 'Absolute weight can only be between 0 and 256 inclusive.\n'
    return say(context.state, 3, refusal)
  } else server.weight = value
  context.worker.backend(server.backend)?.stateChanged(server)
  return silent()
}

function readdress(context: Context, server: Server): Reply {
  const [, , address = server.address, , portText] = context.args
  const port = portText === undefined ? server.port : Number(portText) % 65_536
  const { state: own, worker } = context
  const by = "by 'stats socket command'\n"
  if (address === server.address && port === server.port) {
    if (worker.config.version !== '2.6') return say(own, 4, 'nothing changed\n')
    const tail = portText === undefined ? '' : ', no need to change the port'
    return say(own, 4, `no need to change the addr${tail} ${by}`)
  }
  const changes: string[] = []
  if (address !== server.address)
    changes.push(`IP changed from '${server.address}' to '${address}'`)
  if (port !== server.port) changes.push(`port changed from '${server.port}' to '${port}'`)
  server.address = address
  server.port = port
  return say(own, 4, `${changes.join(', ')} ${by}`)
}

function maxconn(context: Context): Reply {
  const found = find(context, true)
  if ('refusal' in found) return say(context.state, 3, found.refusal)
  const [, text] = context.args
  if (text === undefined) return say(context.state, 3, 'Require <maxconn>.\n')
  const value = Number(text)
  if (!Number.isInteger(value) || value < 0) {
    return sayBare(context, 3, 'maxconn string empty or preceded by garbage\n')
  }
  found.server.maxconn = value === 0 ? undefined : value
  found.backend.serveQueues(found.server)
  return silent()
}

function severity({ state: own, args }: Context): Reply {
  const [wish] = args
  if (wish !== 'none' && wish !== 'number' && wish !== 'string') {
    return say(own, 3, "one of 'none', 'number', 'string' is a required argument\n")
  }
  own.severity = wish
  return silent()
}

function setTimeoutCli({ state: own, args }: Context): Reply {
  if (args.length === 0) return say(own, 3, 'Expects an integer value.\n')
  const [, digits, unit = 's'] = /^(\d+)(ms|s|m|h|d)?$/.exec(args[0] ?? '') ?? []
  if (digits === undefined) return say(own, 3, 'Invalid timeout value.\n')
  const UNITS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
  own.timeout = Number(digits) * (UNITS[unit] ?? 1_000)
  return silent()
}

function toggle(to: AdminState) {
  return (context: Context): Reply => {
    const found = find(context, true)
    if ('refusal' in found) return say(context.state, 3, found.refusal)
    context.worker.setState(found.server, to)
    return silent()
  }
}

function health(on: boolean) {
  return (context: Context): Reply => {
    const found = find(context, true)
    if ('refusal' in found) return say(context.state, 3, found.refusal)
    if (!found.server.config.check) {
      const verb = on ? 'enable' : 'disable'
      const text = `Health check was not configured on this server, cannot ${verb}.\n`
      return say(context.state, 3, text)
    }
    if (on && !found.server.checking) found.server.health = found.server.config.check.rise
    found.server.checking = on
    return silent()
  }
}

function cut(context: Context): Reply {
  const found = find(context, true)
  if ('refusal' in found) return say(context.state, 3, found.refusal)
  found.server.cutSessions()
  found.backend.serveQueues(found.server)
  return silent()
}

function cutOne({ worker, state: own, args }: Context): Reply {
  for (const backend of worker.backends) {
    for (const server of backend.servers) {
      for (const session of server.sessions) {
        if (worker.sessionId(session) !== args[0]) continue
        backend.end(server, session)
        session.cut()
        worker.release()
        return silent()
      }
    }
  }
  return say(own, 3, "No such session (use 'show sess').\n")
}

function addServer(context: Context): Reply {
  const { worker, state: own, args } = context
  const [path = '', at, ...keywords] = args
  if (path === 'help' && worker.config.version === '3.2') {
    const known = 'backup check disabled fall id inter maxconn rise track weight'
    return {
      text: `List of keywords supported for dynamic server:\n${known.replaceAll(' ', '\n')}\n`,
    }
  }
  const [, pool, name] = /^([^/]+)\/(.+)$/.exec(path) ?? []
  if (pool === undefined || name === undefined) return sayBare(context, 3, NEED_PATH)
  const backend = worker.backend(pool)
  if (!backend) return sayBare(context, 3, 'No such backend.\n')
  if (worker.isOld) return say(own, 3, 'Proxy is disabled.\n')
  if (backend.find(name)) {
    return say(own, 3, 'Already exists a server with the same name in backend.\n')
  }
  if (at === undefined) {
    return say(own, 3, "'server' expects <name> and <addr>[:<port>] as arguments.\n")
  }
  const config = readKeywords(name, at, keywords)
  if (typeof config === 'string') return say(own, 3, config)
  worker.add(backend, config)
  return say(own, 6, 'New server registered.\n')
}

function readKeywords(
  name: string,
  at: string,
  keywords: readonly string[],
): ServerConfig | string {
  const [, address = at, portText] = /^(.*):(\d+)$/.exec(at) ?? []
  const port = Number(portText ?? 0)
  const values: Record<string, number> = {}
  let isChecked = false
  let backup = false
  let disabled = false
  let track: string | undefined
  const left = [...keywords]
  for (let word = left.shift(); word !== undefined; word = left.shift()) {
    if (['weight', 'maxconn', 'inter', 'rise', 'fall', 'id'].includes(word)) {
      const text = left.shift()
      const value = Number.parseInt(text ?? '', 10)
      if (Number.isNaN(value)) return `'${word}' : missing or invalid value.\n`
      values[word] =
        word === 'inter' && text?.endsWith('s') && !text.endsWith('ms') ? value * 1_000 : value
    } else if (word === 'check') isChecked = true
    else if (word === 'backup') backup = true
    else if (word === 'disabled') disabled = true
    else if (word === 'track') track = left.shift()
    else if (word === 'cookie') left.shift()
    else return `unknown keyword '${word}'.\n`
  }
  const { weight = 1, maxconn: limit, inter = 2_000, rise = 2, fall = 3 } = values
  const check: CheckConfig | undefined = isChecked
    ? { inter, rise, fall, connects: true }
    : undefined
  const to = { host: address, port }
  return {
    name,
    address,
    port,
    to,
    weight,
    maxconn: limit,
    backup,
    disabled,
    check,
    track,
    cutOnDown: false,
  }
}

function delServer(context: Context): Reply {
  const { worker } = context
  const found = find(context, true)
  if ('refusal' in found) return sayBare(context, 3, found.refusal)
  const refusal = whyKept(worker, found.server)
  if (refusal !== undefined) return sayBare(context, 3, refusal)
  worker.remove(found.server)
  return sayBare(context, 6, 'Server deleted.\n')
}

function clear({ worker, state: own, args }: Context): Reply {
  const all = args[0] === 'all'
  if (all && own.level !== 'admin') return say(own, 3, DENIED)
  for (const { servers } of worker.backends) for (const server of servers) server.clearCounters(all)
  return silent()
}

async function wait(context: Context): Promise<Reply> {
  const { text, level } = await waitCommand(context.worker, context.state, context.args)
  return level === undefined ? { text } : say(context.state, level, text)
}

function lower(to: Level) {
  return ({ state: own }: Context): Reply => {
    if (RANK[to] < RANK[own.level]) own.level = to
    return silent()
  }
}

function help({ worker, state: own }: Context): Reply {
  return say(own, 6, `The following commands are valid at this level:\n${commandList(worker)}`)
}
