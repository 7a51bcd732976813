/** Writes the `exports` of package.json from the list of entries: `npm run entries`. */
import { readFileSync, writeFileSync } from 'node:fs'
import { entries, exportsField, root } from './entries.ts'

const path = `${root}package.json`
const manifest = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>
const fields = Object.entries(manifest).filter(([name]) => name !== 'exports')
// Beside `files`, where a reader of the manifest looks for it.
const at = fields.findIndex(([name]) => name === 'files')
fields.splice(at, 0, ['exports', exportsField()])
writeFileSync(path, `${JSON.stringify(Object.fromEntries(fields), null, 2)}\n`)
console.log(`package.json exports ${entries.length} entries`)
