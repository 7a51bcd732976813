import type { CliState } from './reply.js'
import { whyKept } from '../process/removable.js'
import type { Worker } from '../process/worker.js'

/** What `wait` answers; a level for what is a message. */
interface WaitReply {
  readonly text: string
  readonly level?: 3 | 6
}

const UNITS: Readonly<Record<string, number>> = {
  ...{ us: 0.001, ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 },
}

const HELP = `Usage: wait {-h|<duration>} [condition [args...]]
  - '-h' displays this help
  - <duration> is the maximum wait time, optionally suffixed by the unit among
    'us', 'ms', 's', 'm', 'h', and 'd'. ; the default unit is milliseconds.
  - <condition> indicates what to wait for, no longer than the specified
    duration. Supported conditions are:
    - <none> : by default, just sleep for the specified duration.
    - srv-removable <px>/<sv> : wait for this server to become removable.
`

/** `wait <duration> [srv-removable <backend>/<server>]`: looks again and again, and more seldom the longer it takes. */
export async function waitCommand(
  worker: Worker,
  state: CliState,
  args: readonly string[],
): Promise<WaitReply> {
  const [duration, condition, path] = args
  if (duration === '-h') return { text: HELP }
  if (duration === undefined) return { text: 'Expects a duration in milliseconds.\n', level: 3 }
  const [, digits, unit = 'ms'] = /^(\d+)(us|ms|s|m|h|d)?$/.exec(duration) ?? []
  if (digits === undefined) return { text: 'Invalid duration.\n', level: 3 }
  const delay = Number(digits) * (UNITS[unit] ?? 1)
  if (condition !== undefined && condition !== 'srv-removable') {
    return { text: "Unknown condition (try 'wait -h' to list supported conditions).\n", level: 3 }
  }
  if (condition && path === undefined) {
    return { text: 'Missing server name (<backend>/<server>).\n', level: 3 }
  }
  if (condition && !path?.includes('/')) return { text: "Require 'backend/server'.\n", level: 3 }
  return condition ? untilRemovable(worker, state, path ?? '', delay) : sleep(state, delay)
}

async function sleep(state: CliState, delay: number): Promise<WaitReply> {
  const rested = await rest(state, delay)
  return rested ? { text: 'Done.\n', level: 6 } : { text: 'Interrupted.\n', level: 3 }
}

async function untilRemovable(
  worker: Worker,
  state: CliState,
  path: string,
  delay: number,
): Promise<WaitReply> {
  const start = performance.now()
  const end = start + delay
  const [pool = '', member = ''] = path.split('/')
  for (;;) {
    const server = worker.backend(pool)?.find(member)
    if (!server) return { text: 'Failed.\n', level: 3 }
    const kept = whyKept(worker, server)
    if (kept === undefined) return { text: 'Done.\n', level: 6 }
    // No reason is given; only a server in maint with connections is worth waiting for.
    if (!kept.startsWith('Server still has')) return { text: 'Failed.\n', level: 3 }
    const now = performance.now()
    if (now >= end) return { text: 'Wait delay expired.\n', level: 3 }
    const pause = Math.max(1, Math.min((now - start) / 2, delay / 10))
    const last = end - now < delay / 3
    if (!(await rest(state, last ? end - now : pause))) return { text: 'Interrupted.\n', level: 3 }
  }
}

/** False when the connection ended meanwhile. */
function rest({ ended, viaMaster }: CliState, ms: number): Promise<boolean> {
  return new Promise((resolve) => {
    // The master has closed its side already when the command runs.
    if (ended.aborted || viaMaster) {
      resolve(false)
      return
    }
    const stop = (): void => {
      clearTimeout(timer)
      resolve(false)
    }
    const timer = setTimeout(() => {
      ended.removeEventListener('abort', stop)
      resolve(true)
    }, ms)
    ended.addEventListener('abort', stop, { once: true })
  })
}
