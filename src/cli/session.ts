import { join, resolve } from 'node:path'
import type { TicketStore } from '../core/tickets/store.js'
import type { DrainableProvider } from '../provider/contract.js'
import { DrainableError } from '../provider/error.js'
import type { Config } from './config.js'
import { EXIT } from './exit-code.js'
import type { EndSignal, Io } from './io.js'
import type { Printer } from './printer/printer.js'

/** The options that every verb has. */
export interface CommonOptions {
  readonly config?: string
  readonly username?: string
  readonly passwordFile?: string
  readonly ca?: string
  readonly insecure?: boolean
  readonly json?: boolean
  readonly jsonl?: boolean
  readonly report?: string
  /** A folder; false: none are kept. */
  readonly tickets?: string | boolean
}

/** The balancer of a result. */
export interface Balancer {
  readonly name: string
  readonly instance: string
}

/** What a verb works with. */
export interface Session {
  readonly io: Io
  /** What the command line names as the balancer. */
  readonly named: string
  readonly provider: DrainableProvider
  readonly printer: Printer
  /** Whether stdout is for a document alone: COMMAND then writes to stderr. */
  readonly quietStdout: boolean
  /** Fires at the first SIGINT, SIGTERM or SIGHUP. */
  readonly signal: AbortSignal
  /** The folder of the tickets; undefined if none are kept. */
  readonly folder: string | undefined
  readonly tickets: TicketStore | undefined
}

const OF_SIGNAL: Readonly<Record<EndSignal, number>> = {
  SIGHUP: EXIT.hangup,
  SIGINT: EXIT.interrupted,
  SIGTERM: EXIT.terminated,
}

/** The signal that ended the command, as the reason of an abort. */
export class Interrupted extends Error {
  readonly signal: EndSignal

  constructor(signal: EndSignal) {
    super(`ended by ${signal}`)
    this.signal = signal
  }

  /** The exit status by which a shell knows the signal. */
  get exitCode(): number {
    return OF_SIGNAL[this.signal]
  }
}

/**
 * Calls a verb with an open balancer, and closes it.
 *
 * The first signal aborts what runs, which then ends by its policy; a second one ends the process at once.
 */
export async function withSession<T>(
  io: Io,
  balancer: string,
  options: CommonOptions,
  printer: Printer,
  run: (session: Session) => Promise<T>,
): Promise<T> {
  const abort = new AbortController()
  const unhear = io.onSignal((name) => {
    const reason = new Interrupted(name)
    if (abort.signal.aborted) {
      const where = options.tickets === false ? '' : "; 'drainable orphans BALANCER' lists it"
      printer.say(`${name}: ended at once; what was drained stays drained${where}`)
      io.exitNow(reason.exitCode)
      return
    }
    abort.abort(reason)
    printer.say(`${name}: ending; once more to end at once`)
  })
  try {
    const config = await openConfig(options.config)
    const { openBalancer } = await import('./balancers.js')
    const { username, passwordFile, ca, insecure } = options
    await using provider = await openBalancer(balancer, config, {
      username,
      passwordFile,
      tls: { ...(ca === undefined ? {} : { ca }), ...(insecure === true ? { insecure } : {}) },
      env: io.env,
    })
    const folder = ticketFolder(io, options, config)
    const tickets = folder === undefined ? undefined : await openTickets(folder)
    const quietStdout = options.json === true || options.jsonl === true
    const { signal } = abort
    return await run({
      io,
      named: balancer,
      provider,
      printer,
      quietStdout,
      signal,
      folder,
      tickets,
    })
  } finally {
    unhear()
  }
}

async function openConfig(file: string | undefined): Promise<Config | undefined> {
  if (file === undefined) return undefined
  const { readConfig } = await import('./config.js')
  return readConfig(file)
}

async function openTickets(folder: string): Promise<TicketStore> {
  const { fileTickets } = await import('../core/tickets/file-tickets.js')
  return fileTickets(folder)
}

function ticketFolder(
  { env, home }: Io,
  { tickets }: CommonOptions,
  config: Config | undefined,
): string | undefined {
  if (tickets === false) return undefined
  if (tickets === '')
    throw new DrainableError(
      'INVALID_OPTIONS',
      '--tickets: the name of the folder is empty; give one, or --no-tickets',
    )
  if (typeof tickets === 'string') return resolve(tickets)
  const named = config?.tickets ?? env['DRAINABLE_TICKETS']
  if (named !== undefined && named !== '') return resolve(named)
  const state = env['XDG_STATE_HOME']
  const base = state === undefined || state === '' ? join(home, '.local', 'state') : state
  return join(base, 'drainable')
}
