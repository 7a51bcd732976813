/** `npm run build`: an empty `dist`, tsup, the notices and the list of what was bundled, and the schemas. */
import '../source.mjs'
import { spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { writeBom } from './bom.ts'
import { takeInputs } from './bundled.ts'
import { entries, present, root } from './entries.ts'
import { writeNotices } from './notices.ts'

for (const item of entries) {
  if (!present.includes(item)) console.error(`not built, its source is missing: ${item.source}`)
}
rmSync(`${root}dist`, { recursive: true, force: true })
const { status } = spawnSync('tsup', ['--silent'], { cwd: root, stdio: 'inherit' })
if (status === 0) {
  for (const name of ['all.js', 'all.cjs']) rmSync(`${root}dist/${name}`)
  const inputs = takeInputs()
  writeNotices(inputs)
  writeBom(inputs)
  // It reads the sources, whose names are resolved by the first import above.
  const { writeSchemas } = await import('./schemas.ts')
  writeSchemas()
}
process.exitCode = status ?? 1
