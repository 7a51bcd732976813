import { readdir } from 'node:fs/promises'
import { argumentsOf, type ReadProc, readProc, readStat, type Started } from './started-alone.js'

/** HAProxy's processes, as the operating system shows them. */
export interface LocalProcesses {
  /** Whether a process has ended. `unknown`: its pids are not those of this system. */
  fate(process: Pick<Started, 'pid'>, serves: Started): Promise<'ended' | 'there' | 'unknown'>
  /** Workers of other masters with the same master socket: the present master does not list them. */
  unlisted(master: number, serves: Started): Promise<readonly number[]>
  /** Processes with the same configuration files that are neither its master nor workers of its master. */
  neighbours(serves: Started): Promise<readonly number[]>
}

/** For a HAProxy on another machine, or in another container. */
export const NOT_LOCAL: LocalProcesses = {
  fate: () => Promise.resolve('unknown'),
  unlisted: () => Promise.resolve([]),
  neighbours: () => Promise.resolve([]),
}

/**
 * Reads /proc. It is used only if it shows the process that serves, by name and start: the pids of a container are
 * different processes here.
 */
export function localProcesses(
  read: ReadProc = readProc,
  list: () => Promise<readonly string[]> = () => readdir('/proc'),
): LocalProcesses {
  /** Every haproxy process whose arguments match, with its parent. */
  const parentsOf = async (
    like: number,
    tell: (args: readonly string[]) => string | undefined,
  ): Promise<ReadonlyMap<number, number>> => {
    const own = tell(await wordsOf(like, read))
    const parents = new Map<number, number>()
    if (own === undefined) return parents
    const look = async (pid: number): Promise<void> => {
      const parent = await parentOf(pid, read)
      if (parent !== undefined && tell(await wordsOf(pid, read)) === own) parents.set(pid, parent)
    }
    const names = await list().catch(() => [])
    await Promise.all(names.filter((name) => /^\d+$/.test(name)).map((name) => look(Number(name))))
    return parents
  }
  return {
    async fate({ pid }, serves) {
      if ((await argumentsOf(serves, read)) === undefined) return 'unknown'
      try {
        await read(`/proc/${pid}/stat`)
        return 'there'
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
      if ((await argumentsOf(serves, read)) === undefined) return []
      const parents = await parentsOf(serves.pid, configFiles)
      const parent = parents.get(serves.pid) ?? 0
      const master = parents.has(parent) ? parent : undefined
      return [...parents.keys()].filter(
        (pid) => pid !== serves.pid && pid !== master && (!master || parents.get(pid) !== master),
      )
    },
  }
}

/** The parent of a haproxy process; undefined for any other process, or an ended one. */
async function parentOf(pid: number, read: ReadProc): Promise<number | undefined> {
  const { name, fields } = readStat(await read(`/proc/${pid}/stat`).catch(() => ''))
  return name.startsWith('haproxy') ? Number(fields[1]) : undefined
}

async function wordsOf(pid: number, read: ReadProc): Promise<readonly string[]> {
  return (await read(`/proc/${pid}/cmdline`).catch(() => '')).split('\0')
}

/** The address of the master socket (`-S`); undefined if there is none. */
function masterSocket(words: readonly string[]): string | undefined {
  return after(words, '-S')[0]?.split(',')[0]
}

/** The configuration files and folders (`-f`); undefined if there are none, or they are only checked (`-c`). */
function configFiles(words: readonly string[]): string | undefined {
  const files = after(words, '-f')
  return files.length === 0 || words.includes('-c') ? undefined : files.join('\0')
}

function after(words: readonly string[], option: string): string[] {
  return words.flatMap((word, at) => (word === option ? (words[at + 1] ?? []) : []))
}
