import { readFileSync } from 'node:fs'
import { hostname, uptime } from 'node:os'

/** How long a boot of this machine is told from the next by its moment, where it has no id, in milliseconds. */
const BOOT_GRAIN = 60_000

/** What the machine says of itself, for the owner of a ticket. */
export const host = {
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
