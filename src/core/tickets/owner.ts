import { nodeFs, nodeOs } from '../../provider/builtins.js'
import type { TicketOwner } from './ticket.js'

/** Field 22 of `/proc/<pid>/stat`, counted behind the name in brackets, which may hold anything. */
const START_FIELD = 19

/** Whether the process that wrote a ticket goes on with its drain. */
export type OwnerState = 'lives' | 'gone' | 'unknown'

let self: Omit<TicketOwner, 'name'> | undefined

/** Who holds a drain between two calls: this process, or none. */
export type HeldBy = 'process' | 'nobody'

/** This process, as the owner of a ticket. */
export function ownerHere(name: string | null, heldBy: HeldBy = 'process'): TicketOwner {
  self ??= {
    host: nodeOs().hostname(),
    pid: process.pid,
    boot: host.boot(),
    started: startOf('self') ?? null,
    space: pidSpace(),
  }
  return { name, ...self, ...(heldBy === 'nobody' ? { pid: null } : {}) }
}

/**
 * Whether an owner still lives, and how we know: said for certain only of a process of the same machine,
 * in the same boot, whose pid means the same here as there. Of any other nothing can be told from here.
 */
export function judgeOwner(owner: TicketOwner): {
  readonly state: OwnerState
  readonly text: string
} {
  const { host: machine, boot, pid, started, space } = owner
  const named = owner.name === null ? '' : ` (${owner.name})`
  if (pid === null) {
    const text = `stepped from ${machine}${named}: no process holds it between two steps`
    return { state: 'unknown', text }
  }
  const who = `process ${pid} on ${machine}${named}`
  const here = ownerHere(null)
  if (machine !== here.host || boot !== here.boot || space !== here.space) {
    const why =
      machine !== here.host
        ? 'another machine'
        : boot !== here.boot
          ? 'another boot of it, or another machine of that name'
          : 'another container of it'
    return {
      state: 'unknown',
      text: `${who}: ${why}, so this machine cannot tell whether it lives`,
    }
  }
  if (!exists(pid)) return { state: 'gone', text: `${who} has ended` }
  const now = startOf(pid)
  if (started !== null && now !== undefined && now !== started)
    return { state: 'gone', text: `${who} has ended: another process has its pid now` }
  return { state: 'lives', text: `${who} lives` }
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH' // EPERM: there, and not ours
  }
}

function startOf(pid: number | 'self'): string | undefined {
  try {
    const text = nodeFs().readFileSync(`/proc/${pid}/stat`, 'utf8')
    return text.slice(text.lastIndexOf(')') + 2).split(' ')[START_FIELD]
  } catch {
    return undefined
  }
}

function pidSpace(): string | null {
  try {
    return nodeFs().readlinkSync('/proc/self/ns/pid')
  } catch {
    return null
  }
}

/** How long a boot of this machine is told from the next by its moment, where it has no id, in milliseconds. */
const BOOT_GRAIN = 60_000

/** What the machine says of itself, for the owner of a ticket. */
export const host = {
  /** Names this boot of this machine. */
  boot: (): string => {
    bootId ??= readBootId()
    if (bootId !== '') return bootId
    const started = Date.now() - nodeOs().uptime() * 1_000
    return `${nodeOs().hostname()}@${Math.round(started / BOOT_GRAIN)}`
  },
}

/** No process outlives its boot, so this is read once; empty where the machine has none. */
let bootId: string | undefined

function readBootId(): string {
  try {
    return nodeFs().readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return ''
  }
}
