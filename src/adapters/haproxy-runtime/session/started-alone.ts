import { readFile } from 'node:fs/promises'
import type { ProcessInfo } from '../codec/info.js'

/** Arguments that name processes to be replaced. */
const REPLACES: readonly string[] = ['-sf', '-st', '-x']
/** Ticks of a second in /proc, the same on every Linux of today. */
const TICKS = 100
/** Clocks that agree so far show one moment, s. */
const AGREE = 2

/**
 * Whether a process was started without another to replace, as its arguments say. They are believed only
 * where /proc names a haproxy of that pid and that age: the pid of a container is another process here.
 *
 * @returns false where that is not known
 */
export async function startedAlone(info: ProcessInfo): Promise<boolean> {
  try {
    const [stat, line, uptime, boot] = await Promise.all([
      readFile(`/proc/${info.pid}/stat`, 'utf8'),
      readFile(`/proc/${info.pid}/cmdline`, 'utf8'),
      readFile('/proc/uptime', 'utf8'),
      readFile('/proc/stat', 'utf8'),
    ])
    // The name stands in brackets and may have blanks.
    const name = /\((.*)\)/s.exec(stat)?.[1] ?? ''
    const started = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]) / TICKS
    const age = Number(uptime.split(' ')[0]) - started
    const epoch = Number(/^btime (\d+)$/m.exec(boot)?.[1]) + started
    const sameStart = Math.abs(epoch - Number(info.start)) <= AGREE
    const sameAge = Math.abs(age - info.lived / 1_000) <= AGREE
    if (!name.startsWith('haproxy') || !(sameStart || sameAge)) return false
    return !line.split('\0').some((word) => REPLACES.includes(word))
  } catch {
    return false // no /proc, or not for us
  }
}
