import { readdir } from 'node:fs/promises'
import {
  argumentsOf,
  type ProcStat,
  type ReadProc,
  readProc,
  readStat,
  replacedBy,
  type Started,
} from './started-alone.js'

/** HAProxy's processes, as the operating system shows them. */
export interface LocalProcesses {
  /**
   * What has become of a process. `unknown`: its pids are not those of this system.
   *
   * @param process - with a `start`, where it is known that the one that serves has replaced it
   */
  fate(
    process: Pick<Started, 'pid'> & Partial<Started>,
    serves: Started,
  ): Promise<'ended' | 'there' | 'unknown'>
  /** Workers of other masters with the same master socket: that of today does not list them. */
  unlisted(master: number, serves: Started): Promise<readonly number[]>
  /**
   * Processes with the same configuration files, and those that its arguments name as replaced; none of them
   * is its master, or a worker of that.
   *
   * @returns undefined where its pids are not those of this system, or no configuration is named
   */
  neighbours(serves: Started): Promise<readonly number[] | undefined>
}

/** For a HAProxy on another machine, or in another container. */
export const NOT_LOCAL: LocalProcesses = {
  fate: () => Promise.resolve('unknown'),
  unlisted: () => Promise.resolve([]),
  neighbours: () => Promise.resolve(undefined),
}

/**
 * Reads /proc. It is used only if it shows the process that serves, by name and start: the pids of a container are
 * different processes here.
 */
export function localProcesses(
  read: ReadProc = readProc,
  list: () => Promise<readonly string[]> = () => readdir('/proc'),
): LocalProcesses {
  /** Every haproxy, but those of containers: with its arguments the same, one of them is another one. */
  const everyHaproxy = async (): Promise<ReadonlyMap<number, ProcStat>> => {
    const found = new Map<number, ProcStat>()
    const look = async (pid: number): Promise<void> => {
      const stat = await haproxyOf(pid, read)
      if (stat !== undefined && !(await isNested(pid, read))) found.set(pid, stat)
    }
    const names = await list().catch(() => [])
    await Promise.all(names.filter((name) => /^\d+$/.test(name)).map((name) => look(Number(name))))
    return found
  }
  /** Every haproxy of which the arguments tell the same as those of that one, with its parent. */
  const parentsOf = async (
    like: number,
    tell: (args: readonly string[]) => string | undefined,
  ): Promise<ReadonlyMap<number, number>> => {
    const own = tell(await wordsOf(like, read))
    const parents = new Map<number, number>()
    if (own === undefined) return parents
    for (const [pid, { parent }] of await everyHaproxy())
      if (tell(await wordsOf(pid, read)) === own) parents.set(pid, parent)
    return parents
  }
  return {
    async fate({ pid, start = '' }, serves) {
      if ((await argumentsOf(serves, read)) === undefined) return 'unknown'
      try {
        const { hasEnded, startedAt } = readStat(await read(`/proc/${pid}/stat`))
        if (hasEnded) return 'ended'
        if (start === '') return 'there'
        // What was replaced is the older of the two: a younger one has got its number.
        const successor = readStat(await read(`/proc/${serves.pid}/stat`))
        return startedAt > successor.startedAt ? 'ended' : 'there'
      } catch (error) {
        return (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'ended' : 'unknown'
      }
    },
    async unlisted(master, serves) {
      if ((await argumentsOf(serves, read)) === undefined) return []
      const parents = await parentsOf(master, masterSocket)
      // A worker is a child of its master, and has the same arguments.
      return [...parents.keys()].filter((pid) => {
        const parent = parents.get(pid) ?? 0
        return parent !== master && parents.has(parent)
      })
    },
    async neighbours(serves) {
      const words = await argumentsOf(serves, read)
      if (words === undefined) return undefined
      if (configFiles(words) === undefined) return undefined
      const parents = new Map(await parentsOf(serves.pid, configFiles))
      // With other files a reload names it all the same.
      for (const pid of replacedBy(words)) {
        const stat = await haproxyOf(pid, read)
        if (stat !== undefined) parents.set(pid, stat.parent)
      }
      const parent = parents.get(serves.pid) ?? 0
      const master = parents.has(parent) ? parent : undefined
      return [...parents.keys()].filter(
        (pid) => pid !== serves.pid && pid !== master && (!master || parents.get(pid) !== master),
      )
    },
  }
}

/** Undefined for any other process, and for one that has ended. */
async function haproxyOf(pid: number, read: ReadProc): Promise<ProcStat | undefined> {
  const stat = readStat(await read(`/proc/${pid}/stat`).catch(() => ''))
  return stat.name.startsWith('haproxy') && !stat.hasEnded ? stat : undefined
}

/** Whether a process has another number of its own, in a container: its files and sockets are others too. */
async function isNested(pid: number, read: ReadProc): Promise<boolean> {
  const status = await read(`/proc/${pid}/status`).catch(() => '')
  return /^NSpid:\s+\d+\s+\d/m.test(status)
}

async function wordsOf(pid: number, read: ReadProc): Promise<readonly string[]> {
  return (await read(`/proc/${pid}/cmdline`).catch(() => '')).split('\0')
}

/** The address of the master socket (`-S`); undefined if there is none. */
function masterSocket(words: readonly string[]): string | undefined {
  return after(words, '-S')[0]?.split(',')[0]
}

/**
 * The configuration files and folders (`-f`, or all that follows `--`); undefined where there is none, or they are
 * only checked (`-c`).
 */
function configFiles(words: readonly string[]): string | undefined {
  const end = words.indexOf('--')
  const more = end === -1 ? [] : words.slice(end + 1).filter((word) => word !== '')
  const files = [...after(words, '-f'), ...more]
  return files.length === 0 || words.includes('-c') ? undefined : files.join('\0')
}

function after(words: readonly string[], option: string): string[] {
  return words.flatMap((word, at) => (word === option ? (words[at + 1] ?? []) : []))
}
