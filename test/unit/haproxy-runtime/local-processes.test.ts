import { describe, expect, test } from 'vitest'
import { localProcesses } from '../../../src/adapters/haproxy-runtime/session/local-processes.js'

const BOOT = 1_700_000_000
/** Each began 500 s after the machine. */
const START = String(BOOT + 500)

/** A process of the system: its parent, its name and its arguments. */
interface Shown {
  readonly parent: number
  readonly name?: string
  readonly args?: readonly string[]
  /** @defaultValue asleep */
  readonly state?: string
  /** Ticks since the boot. */
  readonly startedAt?: number
  /** Its numbers, from the outermost namespace of processes to its own. */
  readonly numbers?: readonly number[]
}

const MASTER = ['-W', '-f', 'haproxy.cfg', '-S', '/run/master.sock,level,admin']

/** The system with these processes; 17 fields stand between a parent and a start. */
function system(shown: Readonly<Record<number, Shown>>, refuse: readonly string[] = []) {
  const between = Array.from({ length: 17 }, () => '0').join(' ')
  const files = new Map([['/proc/stat', `btime ${BOOT}`]])
  for (const [pid, one] of Object.entries(shown)) {
    const { parent, name = 'haproxy', args = MASTER, state = 'S', startedAt = 50_000 } = one
    files.set(
      `/proc/${pid}/stat`,
      `${pid} (${name}) ${state} ${parent} ${between} ${startedAt} 0 0`,
    )
    files.set(
      `/proc/${pid}/status`,
      `Name:\t${name}\nNSpid:\t${(one.numbers ?? [pid]).join('\t')}\n`,
    )
    files.set(`/proc/${pid}/cmdline`, ['/usr/sbin/haproxy', ...args, ''].join('\0'))
  }
  const read = (path: string): Promise<string> => {
    const code = refuse.includes(path) ? 'EACCES' : 'ENOENT'
    const text = refuse.includes(path) ? undefined : files.get(path)
    return text === undefined
      ? Promise.reject(Object.assign(new Error(code), { code }))
      : Promise.resolve(text)
  }
  return localProcesses(read, () => Promise.resolve([...Object.keys(shown), 'meminfo', 'self']))
}

/** A master and its worker, which serves. */
const OURS = { 10: { parent: 1 }, 11: { parent: 10 } }
const serves = { pid: 11, start: START }

describe('the fate of a process', () => {
  test('is its end if the system does not show it', async () => {
    expect(await system(OURS).fate({ pid: 12 }, serves)).toBe('ended')
    expect(await system(OURS).fate({ pid: 10 }, serves)).toBe('there')
  })

  test('is its end where only its parent has not asked for that yet', async () => {
    const left = { 12: { parent: 1, state: 'Z' } }
    expect(await system({ ...OURS, ...left }).fate({ pid: 12 }, serves)).toBe('ended')
  })

  test('is its end where a younger process has got its number', async () => {
    const replaced = { pid: 12, start: String(BOOT + 400) }
    const older = { 12: { parent: 1, startedAt: 40_000 } }
    expect(await system({ ...OURS, ...older }).fate(replaced, serves)).toBe('there')
    const younger = { 12: { parent: 1, name: 'sh', startedAt: 60_000 } }
    expect(await system({ ...OURS, ...younger }).fate(replaced, serves)).toBe('ended')
    // Of one that was met beside it nothing says which is the older.
    expect(await system({ ...OURS, ...younger }).fate({ pid: 12 }, serves)).toBe('there')
  })

  test('is not known by the pids of another machine or container', async () => {
    expect(await system(OURS).fate({ pid: 12 }, { ...serves, pid: 13 })).toBe('unknown')
    expect(await system(OURS).fate({ pid: 12 }, { ...serves, start: '1' })).toBe('unknown')
    expect(await system(OURS).fate({ pid: 12 }, { ...serves, start: '' })).toBe('unknown')
  })

  test('is not known if it may not be read', async () => {
    expect(await system(OURS, ['/proc/12/stat']).fate({ pid: 12 }, serves)).toBe('unknown')
  })
})

describe('the neighbours of a process', () => {
  const PLAIN = ['-f', 'haproxy.cfg']
  const alone = { 11: { parent: 1, args: PLAIN } }

  test('are others with the same configuration', async () => {
    const [file, check] = [
      ['-f', 'b.cfg'],
      ['-c', ...PLAIN],
    ]
    const other = {
      12: { parent: 1, args: PLAIN },
      13: { parent: 1, args: file },
      14: { parent: 1, args: check },
    }
    expect(await system({ ...alone, ...other }).neighbours(serves)).toEqual([12])
    expect(await system(alone).neighbours(serves)).toEqual([])
  })

  test('are told by the files after -- too', async () => {
    const all = {
      11: { parent: 1, args: ['--', 'haproxy.cfg'] },
      12: { parent: 1, args: ['--', 'haproxy.cfg'] },
      13: { parent: 1, args: ['--', 'b.cfg'] },
    }
    expect(await system(all).neighbours(serves)).toEqual([12])
  })

  test('are those that it has replaced, with whatever configuration', async () => {
    const reloaded = {
      11: { parent: 1, args: ['-f', 'new.cfg', '-sf', '12', '13', '14'] },
      12: { parent: 1, args: PLAIN },
      13: { parent: 1, name: 'sh' },
    }
    expect(await system(reloaded).neighbours(serves)).toEqual([12])
  })

  test('are none in a container, whose files are others', async () => {
    const other = { 12: { parent: 1, args: PLAIN, numbers: [12, 1] } }
    expect(await system({ ...alone, ...other }).neighbours(serves)).toEqual([])
  })

  test('are not its master, nor the workers of that', async () => {
    const worker = { 12: { parent: 10 } }
    expect(await system({ ...OURS, ...worker }).neighbours(serves)).toEqual([])
    const before = { 20: { parent: 1 }, 21: { parent: 20 } }
    expect(await system({ ...OURS, ...before }).neighbours(serves)).toEqual([20, 21])
  })

  test('are not known without a configuration file, or on another machine', async () => {
    const bare = { 11: { parent: 1, args: [] }, 12: { parent: 1, args: [] } }
    expect(await system(bare).neighbours(serves)).toBeUndefined()
    const other = { 12: { parent: 1, args: PLAIN } }
    const far = { ...serves, start: '1' }
    expect(await system({ ...alone, ...other }).neighbours(far)).toBeUndefined()
  })
})

describe('unlisted workers', () => {
  const before = { 20: { parent: 1 }, 21: { parent: 20 } }

  test('include those of another master with the same socket', async () => {
    expect(await system({ ...OURS, ...before }).unlisted(10, serves)).toEqual([21])
    expect(await system(OURS).unlisted(10, serves)).toEqual([])
  })

  test('do not include those of a HAProxy with another master socket or none', async () => {
    for (const args of [['-W', '-S', '/run/other.sock'], ['-W'], ['-S']]) {
      const other = { 20: { parent: 1, args }, 21: { parent: 20, args } }
      expect(await system({ ...OURS, ...other }).unlisted(10, serves)).toEqual([])
    }
  })

  test('are none in a container, whose sockets are others', async () => {
    const inside = {
      20: { parent: 1, numbers: [20, 1] },
      21: { parent: 20, numbers: [21, 5] },
    }
    expect(await system({ ...OURS, ...inside }).unlisted(10, serves)).toEqual([])
  })

  test('are none of another program', async () => {
    const other = { 20: { parent: 1 }, 21: { parent: 20, name: 'sh' } }
    expect(await system({ ...OURS, ...other }).unlisted(10, serves)).toEqual([])
  })

  test('are not known by the pids of another machine or container', async () => {
    const all = system({ ...OURS, ...before })
    expect(await all.unlisted(10, { ...serves, pid: 12 })).toEqual([])
    expect(await all.unlisted(30, serves)).toEqual([])
  })
})
