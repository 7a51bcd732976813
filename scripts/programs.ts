/**
 * Runs the programs of a folder against the sources, one by one: `npm run example haproxy-runtime`, `npm run bench`.
 *
 * Without names all of them run. Each must end by itself, in time, with status 0. `npm run bench -- all` runs those of
 * docs/benchmarks.md and writes that page.
 */
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const limits: Record<string, number> = { examples: 60_000, bench: 600_000 }

const root = fileURLToPath(new URL('../', import.meta.url))
const [folder = 'examples', ...words] = process.argv.slice(2).filter((word) => word !== '--')
if (folder === 'bench' && words[0] === 'all') {
  const { benchAll } = await import('./bench/all.ts')
  process.exit(benchAll(words.slice(1)))
}
const all = readdirSync(`${root}${folder}`, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts') && !/(^|\/)support\//.test(name))
  .map((name) => name.replace(/\.ts$/, ''))
  .sort()
const chosen = all.filter(
  (name) =>
    words.length === 0 || words.some((word) => name === word || name.startsWith(`${word}/`)),
)
if (chosen.length === 0) {
  console.error(`no ${words.join(', ')} in ${folder}; there are: ${all.join(', ')}`)
  process.exit(2)
}

const failed: string[] = []
for (const name of chosen) {
  console.log(`--- ${folder}/${name}.ts`)
  const args = ['--import', `${root}scripts/source.mjs`, `${root}${folder}/${name}.ts`]
  const timeout = limits[folder] ?? 60_000
  const { status, signal } = spawnSync(process.execPath, args, { stdio: 'inherit', timeout })
  if (status === 0) continue
  failed.push(name)
  console.error(`${folder}/${name}.ts ended with ${signal ?? `status ${status}`}`)
}
process.exitCode = failed.length > 0 ? 1 : 0
