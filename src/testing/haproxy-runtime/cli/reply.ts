import type { Backend } from '../process/backend.js'
import type { Level } from '../options.js'
import type { Server } from '../process/server.js'
import type { Worker } from '../process/worker.js'

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

/** What a command is run with. */
export interface Context {
  readonly worker: Worker
  readonly state: CliState
  readonly args: readonly string[]
}

type Severity = 3 | 4 | 6

const SEVERITIES: Readonly<Record<Severity, string>> = { 3: 'err', 4: 'warning', 6: 'info' }

/** The refusal of a path that is none. */
export const NEED_PATH = "Require 'backend/server'.\n"

/** The refusal of a command beyond one's level. */
export const DENIED = 'Permission denied\n'

/** A message, with its level in front where the connection wants that; data never has one. */
export function say({ severity: wish }: CliState, level: Severity, text: string): Reply {
  if (wish === 'none') return { text }
  return { text: `[${wish === 'number' ? level : SEVERITIES[level]}]: ${text}` }
}

/** A message that 2.6 does not follow with an empty line. */
export function sayBare(context: Context, level: Severity, text: string): Reply {
  const reply = say(context.state, level, text)
  return context.worker.config.version === '2.6' ? { ...reply, bare: true } : reply
}

type Found = { readonly backend: Backend; readonly server: Server } | { readonly refusal: string }

/** The server that the first word names; `needsLive` for what changes something. */
export function find({ worker, args }: Context, needsLive = false): Found {
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

/** Done, with nothing to say. */
export function silent(): Reply {
  return { text: '' }
}
