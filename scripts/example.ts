/**
 * Runs an example against the sources: `npm run example haproxy-runtime`. Without a name, all of them one by one.
 *
 * Each must end by itself within a minute, with status 0.
 */
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../', import.meta.url))
const all = readdirSync(`${root}examples`)
  .filter((name) => name.endsWith('.ts'))
  .map((name) => name.replace(/\.ts$/, ''))
const asked = process.argv.slice(2).filter((word) => word !== '--')
const unknown = asked.filter((name) => !all.includes(name))
if (unknown.length > 0) {
  console.error(`no such example: ${unknown.join(', ')}; there are: ${all.join(', ')}`)
  process.exit(2)
}

const failed: string[] = []
for (const name of asked.length > 0 ? asked : all) {
  console.log(`--- examples/${name}.ts`)
  const args = ['--import', `${root}scripts/source.mjs`, `${root}examples/${name}.ts`]
  const { status, signal } = spawnSync(process.execPath, args, {
    stdio: 'inherit',
    timeout: 60_000,
  })
  if (status !== 0) {
    failed.push(name)
    console.error(`examples/${name}.ts ended with ${signal ?? `status ${status}`}`)
  }
}
process.exitCode = failed.length > 0 ? 1 : 0
