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
  const replaced = replacedBy((await argumentsOf(info, read)) ?? [])
  return replaced.length > 0 && replaced.every((one) => one === pid)
}

/** The processes that arguments name as those to be replaced. */
export function replacedBy(words: readonly string[]): number[] {
  const from = words.findIndex((word) => word === '-sf' || word === '-st')
  if (from === -1) return []
  const rest = words.slice(from + 1)
  const end = rest.findIndex((word) => !/^\d+$/.test(word))
  return (end === -1 ? rest : rest.slice(0, end)).map(Number)
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
    const { name, startedAt } = readStat(stat)
    const started = startedAt / TICKS
    const epoch = Number(/^btime (\d+)$/m.exec(boot)?.[1]) + started
    const isSameStart = info.start !== '' && Math.abs(epoch - Number(info.start)) <= AGREE
    return name.startsWith('haproxy') && isSameStart ? line.split('\0') : undefined
  } catch {
    return undefined // no /proc, or not for us
  }
}

/** What `/proc/<pid>/stat` says. */
export interface ProcStat {
  /** It stands in brackets, and may have blanks. */
  readonly name: string
  readonly parent: number
  /** When it was made, in ticks since the boot. */
  readonly startedAt: number
  /** It has ended, and its parent has not asked for that yet (a zombie): it holds nothing any more. */
  readonly hasEnded: boolean
}

export function readStat(stat: string): ProcStat {
  const name = /\((.*)\)/s.exec(stat)?.[1] ?? ''
  const [state = '', parent, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const hasEnded = state === 'Z' || state === 'X'
  return { name, parent: Number(parent), startedAt: Number(fields[17]), hasEnded }
}
