import { readFileSync } from 'node:fs'
import { hostname, uptime } from 'node:os'
import type { Clock } from '../../provider/clock.js'

/** How long a boot of this machine is told from the next by its moment, where it has no id, in milliseconds. */
const BOOT_GRAIN = 60_000

/**
 * What the machine says of time: wall time can jump, the uptime of one boot can't. A ticket holds both,
 * so that another process can tell how much time really passed between two steps.
 */
export const host = {
  /** Epoch milliseconds. */
  now: (): number => Date.now(),
  /** Seconds since this machine was started. */
  uptime: (): number => uptime(),
  /** Names this boot of this machine. */
  boot: (): string => {
    bootId ??= readBootId()
    if (bootId !== '') return bootId
    const started = Date.now() - uptime() * 1_000
    return `${hostname()}@${Math.round(started / BOOT_GRAIN)}`
  },
}

/** No process outlives its boot, so this is read once; empty where the machine has none. */
let bootId: string | undefined

function readBootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return ''
  }
}

/** What tells how much time has passed since: of the machine, or of a clock that tells wall time itself. */
export interface Stamp {
  /** Epoch milliseconds. */
  readonly wall: number
  readonly boot: string
  /** Seconds. */
  readonly uptime: number
}

/** The moment, for a ticket. A clock with wall time of its own vouches for it: nothing else is asked. */
export function stampOf(clock: Clock): Stamp {
  if (clock.wall === undefined)
    return { wall: host.now(), boot: host.boot(), uptime: host.uptime() }
  const wall = clock.wall()
  return { wall: Math.floor(wall), boot: "the caller's clock", uptime: wall / 1_000 }
}
