/** `npm run docs`: the reference of every entry, into `docs/api`. A name without a word about it is an error. */
import { spawnSync } from 'node:child_process'
import { entries, present, root } from './entries.ts'

for (const item of entries) {
  if (!present.includes(item))
    console.error(`not documented, its source is missing: ${item.source}`)
}
const args = present.flatMap((item) => ['--entryPoints', item.source])
const { status } = spawnSync('typedoc', [...args, ...process.argv.slice(2)], {
  cwd: root,
  stdio: 'inherit',
})
process.exitCode = status ?? 1
