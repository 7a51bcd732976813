/**
 * `npm run docs`: the state diagram of docs/idle.md, docs/codes.md, and the guides and the reference of every entry into
 * `docs/api`. A public name without a word about it is an error, and so is a link that leads nowhere, or a
 * guide without its heading.
 */
import { spawnSync } from 'node:child_process'
import { writeCodes } from './codes.ts'
import { entries, present, root } from './entries.ts'
import { brokenLinks, untitled } from './site.ts'
import { writeDiagram } from './state-diagram.ts'

writeDiagram()
writeCodes()

for (const item of entries) {
  if (!present.includes(item))
    console.error(`not documented, its source is missing: ${item.source}`)
}
const points = present.flatMap((item) => ['--entryPoints', item.source])
const args = [...points, ...process.argv.slice(2)]
const { status } = spawnSync('typedoc', args, { cwd: root, stdio: 'inherit' })
const site = `${root}docs/api`
const broken = status === 0 ? [...brokenLinks(site), ...untitled(site)] : []
for (const line of broken) console.error(line)
process.exitCode = broken.length > 0 ? 1 : (status ?? 1)
