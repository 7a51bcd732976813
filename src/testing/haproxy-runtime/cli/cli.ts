import type { Level } from '../options.js'
import { addServer, delServer } from './dynamic-commands.js'
import { DENIED, say, silent } from './reply.js'
import type { CliState, Context, Reply } from './reply.js'
import { cut, cutOne, health, maxconn, setServer, setWeight, toggle } from './server-commands.js'
import {
  backends,
  cliLevel,
  conn,
  env,
  getWeight,
  info,
  sess,
  stat,
  state,
  version,
} from '../show/show-commands.js'
import { waitCommand } from './wait.js'
import type { Worker } from '../process/worker.js'

const RANK: Readonly<Record<Level, number>> = { user: 0, operator: 1, admin: 2 }

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
