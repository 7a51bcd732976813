/**
 * `npm run docs`: the state diagram of docs/idle.md, docs/codes.md, and the reference of every entry into `docs/api`. A public name
 * without a word about it is an error.
 */
import { spawnSync } from 'node:child_process'
import { writeCodes } from './codes.ts'
import { entries, present, root } from './entries.ts'
import { writeDiagram } from './state-diagram.ts'

writeDiagram()
writeCodes()

for (const item of entries) {
  if (!present.includes(item))
    console.error(`not documented, its source is missing: ${item.source}`)
}
const points = present.flatMap((item) => ['--entryPoints', item.source])
const args = [...points, ...process.argv.slice(2)]
process.exitCode = spawnSync('typedoc', args, { cwd: root, stdio: 'inherit' }).status ?? 1
