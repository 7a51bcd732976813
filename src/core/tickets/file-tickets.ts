import { dirname, join, resolve } from 'node:path'
import { nodeCrypto, nodeFs } from '../../provider/builtins.js'
import { DrainableError } from '../../provider/error.js'
import { homePath } from '../../provider/options.js'
import { printable, quote } from '../../provider/quote.js'
import { judgeOwner, ownerHere } from './owner.js'
import type { TicketStore } from './store.js'
import { keptIn } from './writing/line.js'

/** Ids of tickets, and our additional keys with a `=`. A hidden file, which begins with a dot, is not one of them. */
const FILE_KEY = /^(?!\.)[\w.:@=-]{1,200}$/

/** A file that is being written: the pid of its writer, when that began, where it runs, and a random part. */
const TEMPORARY = /\.json\.(\d+)-(\d+)-([0-9a-f]{8})-[0-9a-f]{12}\.tmp$/

/** The age after which no process elsewhere can still be writing a temporary file, in milliseconds. */
const ABANDONED = 3_600_000

/**
 * Makes a ticket store of files: one JSON file per ticket in `path`, readable only by the owner (0600), each written
 * atomically. The folder is created when needed.
 *
 * The file of ticket `a` is `a.json`. On a disk that ignores case, ids must differ in more than case; Windows does
 * not allow `:` in file names.
 *
 * @param path - folder, such as `/var/lib/drain`
 * @throws `INVALID_OPTIONS` if it is not a path
 *
 * @example
 * ```ts
 * import { drain, fileTickets, type DrainableProvider } from 'drainable'
 *
 * export async function deploy(lb: DrainableProvider, install: () => Promise<void>): Promise<void> {
 *   const tickets = fileTickets('/var/lib/drain')
 *   await drain(lb, { pool: 'web', member: 'web1' }, { tickets, id: 'deploy-web1' }, () => install())
 * }
 * ```
 */
export function fileTickets(path: string): TicketStore {
  const refuse = (words: string): never => {
    throw new DrainableError('INVALID_OPTIONS', `fileTickets(): path: ${words}`)
  }
  if ((path as unknown) instanceof URL) refuse('found a URL; write fileURLToPath(url)')
  if (typeof path !== 'string' || path === '' || path.includes('\0'))
    refuse('expected the path of a folder')
  const wrong = homePath(path)
  if (wrong !== undefined) refuse(wrong)
  let swept = false
  const file = (key: string): string => {
    if (FILE_KEY.test(key)) return join(path, `${key}.json`)
    throw new DrainableError(
      'TICKET_INVALID',
      `'${quote(key)}' can't be a ticket's id: expected letters, digits or _ . : @ -, and no dot in front`,
    )
  }
  /** Says it where a file has the name of the folder; any other error is as clear as its own words. */
  const readable = (cause: unknown): unknown => {
    const { code } = cause as NodeJS.ErrnoException
    if (code !== 'ENOTDIR' && code !== 'EEXIST') return cause
    const words = `fileTickets(): path: ${quote(path)} is no folder, or goes through a file; give another folder for the tickets`
    return new DrainableError('INVALID_OPTIONS', words, { cause })
  }
  const store: TicketStore = {
    async get(key) {
      const name = file(key)
      let text: string
      try {
        text = await nodeFs().promises.readFile(name, 'utf8')
      } catch (cause) {
        if (isMissing(cause)) return undefined
        throw readable(cause)
      }
      try {
        return JSON.parse(text) as unknown
      } catch (cause) {
        throw new DrainableError(
          'TICKET_INVALID',
          `${name} is not JSON, remove it if it is not a ticket of yours`,
          // The parser's message quotes the file, so make it printable.
          { cause: new SyntaxError(printable((cause as Error).message)) },
        )
      }
    },
    async set(key, value) {
      const name = file(key)
      await makeFolder(path).catch((cause: unknown) => {
        throw readable(cause)
      })
      if (!swept) {
        swept = true
        await removeAbandoned(path)
      }
      const temporary = `${name}.${writerHere()}.tmp`
      try {
        await nodeFs().promises.writeFile(temporary, JSON.stringify(value), {
          mode: 0o600,
          flush: true,
        })
        await nodeFs().promises.rename(temporary, name)
      } catch (error) {
        await nodeFs().promises.rm(temporary, { force: true })
        throw error
      }
      return true
    },
    async delete(key) {
      await nodeFs().promises.rm(file(key), { force: true })
      return true
    },
    async keys() {
      try {
        const entries = await nodeFs().promises.readdir(path, { withFileTypes: true })
        return entries
          .filter((entry) => entry.isFile() && entry.name.endsWith('.json'))
          .map((entry) => entry.name.slice(0, -'.json'.length))
          .filter((key) => FILE_KEY.test(key))
      } catch (cause) {
        if (isMissing(cause)) return []
        throw readable(cause)
      }
    },
  }
  return keptIn(store, resolve(path))
}

function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT'
}

/** Names this process in a temporary file: short enough that the longest id of a ticket still makes a file's name. */
function writerHere(): string {
  const { started } = ownerHere(null)
  return `${process.pid}-${started ?? 0}-${placeHere()}-${nodeCrypto().randomBytes(6).toString('hex')}`
}

/** This boot of this machine, and the space that its pids are of: only there a pid says who lives. */
function placeHere(): string {
  const { host, boot, space } = ownerHere(null)
  return nodeCrypto()
    .createHash('sha256')
    .update(JSON.stringify([host, boot, space]))
    .digest('hex')
    .slice(0, 8)
}

/**
 * Removes temporary files of writers that crashed before their rename: of a process of this machine as soon as it is
 * dead, of any other after an hour. A failure does not prevent the write of a ticket.
 */
async function removeAbandoned(path: string): Promise<void> {
  try {
    for (const name of await nodeFs().promises.readdir(path)) {
      const [, pid, started, place] = TEMPORARY.exec(name) ?? []
      if (pid === undefined) continue
      const temporary = join(path, name)
      if (place === placeHere() ? !isAlive(pid, started) : await isOld(temporary))
        await nodeFs().promises.rm(temporary, { force: true })
    }
  } catch {
    // another process removes them too, or this one has no permission
  }
}

function isAlive(pid: string, started: string | undefined): boolean {
  const known = started === undefined || started === '0' ? null : started
  const writer = { ...ownerHere(null), pid: Number(pid), started: known }
  return judgeOwner(writer).state !== 'gone'
}

async function isOld(temporary: string): Promise<boolean> {
  const { mtimeMs } = await nodeFs().promises.stat(temporary)
  return Date.now() - mtimeMs > ABANDONED
}

/**
 * Makes a folder and those that it stands in. Node's own recursive `mkdir` never ends, at full load, where the system says
 * of an existing folder that nothing can be made in it with ENOENT, as in `/proc`: a daemon's home can be such a place.
 */
async function makeFolder(path: string): Promise<void> {
  try {
    await nodeFs().promises.mkdir(path, { mode: 0o700 })
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    if (code === 'EEXIST' && (await nodeFs().promises.stat(path)).isDirectory()) return
    const parent = dirname(path)
    const isThere = await nodeFs()
      .promises.stat(parent)
      .then(
        () => true,
        () => false,
      )
    if (code !== 'ENOENT' || isThere || parent === path) throw cause
    await makeFolder(parent)
    await makeFolder(path)
  }
}
