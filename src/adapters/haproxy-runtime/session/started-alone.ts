import { readFile } from 'node:fs/promises'
import type { ProcessInfo } from '../codec/info.js'

/** Arguments that name processes to be replaced. */
const REPLACES: readonly string[] = ['-sf', '-st', '-x']
/** Ticks per second in /proc, the same on every present Linux. */
const TICKS = 100
/** Two clocks that differ by less than this show the same time, s. */
const AGREE = 2

export type Started = Pick<ProcessInfo, 'pid' | 'start'>

/** Reads a file of `/proc`. */
export type ReadProc = (path: string) => Promise<string>

export const readProc: ReadProc = (path) => readFile(path, 'utf8')

/**
 * Whether a process was started without a predecessor, by its arguments. They are used only if /proc shows a haproxy
 * with that pid and start time: the pid of a container is a different process here.
 *
 * @returns false if that is not known
 */
export async function startedAlone(info: Started, read: ReadProc = readProc): Promise<boolean> {
  const words = await argumentsOf(info, read)
  return words !== undefined && !words.some((word) => REPLACES.includes(word))
}

/**
 * Whether a process was started to replace only that one, by its arguments.
 *
 * @returns false if that is not known
 */
export async function isSuccessorOf(
  info: Started,
  pid: number,
  read: ReadProc = readProc,
): Promise<boolean> {
  const words = (await argumentsOf(info, read)) ?? []
  const from = words.findIndex((word) => word === '-sf' || word === '-st')
  if (from === -1) return false
  const rest = words.slice(from + 1)
  const end = rest.findIndex((word) => !/^\d+$/.test(word))
  const replaced = end === -1 ? rest : rest.slice(0, end)
  return replaced.length > 0 && replaced.every((word) => Number(word) === pid)
}

/** The arguments of a process; undefined if they can't be shown to be its own. */
export async function argumentsOf(
  info: Started,
  read: ReadProc = readProc,
): Promise<string[] | undefined> {
  try {
    const [stat, line, boot] = await Promise.all([
      read(`/proc/${info.pid}/stat`),
      read(`/proc/${info.pid}/cmdline`),
      read('/proc/stat'),
    ])
    const { name, fields } = readStat(stat)
    const started = Number(fields[19]) / TICKS
    const epoch = Number(/^btime (\d+)$/m.exec(boot)?.[1]) + started
    const isSameStart = info.start !== '' && Math.abs(epoch - Number(info.start)) <= AGREE
    return name.startsWith('haproxy') && isSameStart ? line.split('\0') : undefined
  } catch {
    return undefined // no /proc, or not for us
  }
}

/** Parses `/proc/<pid>/stat`: a name in parentheses, which can contain blanks, and the fields after it. */
export function readStat(stat: string): { readonly name: string; readonly fields: string[] } {
  const name = /\((.*)\)/s.exec(stat)?.[1] ?? ''
  return { name, fields: stat.slice(stat.lastIndexOf(')') + 2).split(' ') }
}
