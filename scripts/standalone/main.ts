/**
 * `npm run standalone`: the command as one executable file for each platform, in the git-ignored folder `standalone/`,
 * with its size; and for that of this machine how long it takes to start.
 *
 *     npm run standalone                  # for every platform
 *     npm run standalone -- linux-x64     # only this one
 */
import { spawnSync } from 'node:child_process'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../package/entries.ts'
import { buildStandalone, nodeVersion, ownPlatform, platforms } from './build.ts'

const RUNS = 15

const asked = process.argv.slice(2).filter((word) => word !== '--')
const wanted = platforms.filter((platform) => asked.length === 0 || asked.includes(platform))
const unknown = asked.filter((word) => !(platforms as readonly string[]).includes(word))
if (unknown.length > 0) {
  console.error(`no such platform: ${unknown.join(', ')}; there are: ${platforms.join(', ')}`)
  process.exit(2)
}

for (const [platform, path] of await buildStandalone(wanted, join(root, 'standalone'))) {
  const megabytes = (statSync(path).size / 1e6).toFixed(0)
  console.log(`${path.slice(root.length)}: ${megabytes} MB, Node ${nodeVersion}`)
  if (platform !== ownPlatform()) continue
  const bare = startOf(process.execPath, ['-e', '0'])
  for (const argument of ['--version', '--help'])
    console.log(`  ${argument}: ${startOf(path, [argument])} ms (median of ${RUNS})`)
  console.log(`  an empty program on the Node ${process.versions.node} here: ${bare} ms`)
}

/** Milliseconds from start to end: the median. */
function startOf(program: string, args: readonly string[]): number {
  const times = Array.from({ length: RUNS }, () => {
    const began = performance.now()
    const { status } = spawnSync(program, args)
    if (status !== 0) throw new Error(`${program} ${args.join(' ')} ended with ${String(status)}`)
    return performance.now() - began
  }).sort((a, b) => a - b)
  return Math.round(times[Math.floor(RUNS / 2)] ?? 0)
}
